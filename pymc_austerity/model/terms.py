"""The terms of a model's log-density, and which of them to cut to rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    CheckParameterValue,
    Shape,
    Shape_i,
    SimulatorRV,
    Subtensor,
    TensorType,
    Variable,
    ancestors,
    clone_replace,
    rebuilt,
)
from pymc_austerity.arguments import choice_among
from pymc_austerity.errors import DataError, NotRowwiseError, SettingError, SettingTypeError
from pymc_austerity.model.cut import Examples, Known, array_of, static_data
from pymc_austerity.model.cut.known import OF_SHAPES
from pymc_austerity.model.rewritten import inlined, refuse_overflow, widened


@dataclass(frozen=True, eq=False)
class ModelTerm:
    """The log-density of one variable or potential of a model.

    Attributes
    ----------
    name : str
        Name of the variable or potential.
    kind : {"prior", "potential", "observed"}
        What it is.
    distribution : str
        Name of its distribution; empty for a potential.
    graph : variable
        Element-wise log-density, as the model writes it.
    plain : variable
        The same in plain operations on data of known shape.
    shape : tuple of int
        Shape of the log-density.
    n_values : int
        Number of values that are observed, or 0.
    """

    name: str
    kind: str
    distribution: str
    graph: Variable
    plain: Variable
    shape: tuple[int, ...]
    n_values: int

    @property
    def is_one_draw(self) -> bool:
        """Whether many observed values share one log-density, as in a time series."""
        return self.kind == "observed" and int(np.prod(self.shape)) <= 1 < self.n_values

    def n_rows(self, axis: int) -> int:
        """Length of the axis of the rows; 0 if there is no such axis."""
        return self.shape[axis] if len(self.shape) > axis else 0


def terms_of(model: pm.Model, known: Known) -> list[ModelTerm]:
    """All terms of the log-density; `known` learns the shapes and values of the likelihood."""
    kinds = dict.fromkeys(model.free_RVs, "prior") | dict.fromkeys(model.observed_RVs, "observed")
    kinds |= dict.fromkeys(model.potentials, "potential")
    variables = list(kinds)
    log_densities = model.logp(vars=variables, jacobian=True, sum=False) if variables else []
    graphs = [pt.as_tensor(graph, allow_xtensor_conversion=True) for graph in log_densities]
    given = inlined(graphs)
    refuse_overflow(
        {v.name: graph for v, graph in zip(variables, given, strict=True)},
        model.value_vars,
        [known.start(v).astype(v.dtype) for v in model.value_vars],
    )
    graphs = widened(given if model.check_bounds else rebuilt(given, _without_check))
    plain = inlined(static_data(graphs))
    known.learn_shapes(plain)
    return [
        ModelTerm(
            name=variable.name,
            kind=kind,
            distribution=_distribution(variable) if kind != "potential" else "",
            graph=graph,
            plain=p,
            shape=known.shape(p),
            n_values=_n_values(model, variable, known) if kind == "observed" else 0,
        )
        for (variable, kind), graph, p in zip(kinds.items(), graphs, plain, strict=True)
    ]


def _without_check(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    """What a check lets through."""
    return inputs[:1] if isinstance(node.op, CheckParameterValue) else None


def _distribution(variable: Variable) -> str:
    name = type(variable.owner.op).__name__ if variable.owner is not None else ""
    return name.removesuffix("RV")


def _n_values(model: pm.Model, variable: Variable, known: Known) -> int:
    return int(np.prod(known.shape(model.rvs_to_values[variable])))


# ------------------------------------------------------------------ the choice


def chosen_terms(
    terms: Sequence[ModelTerm], names: Sequence[str] | None, axis: int
) -> list[ModelTerm]:
    """Choose the terms to cut to rows: those named, or the observed variables with the most rows.

    Raises
    ------
    DataError
        There are no observed variables.
    NotRowwiseError
        A chosen term has no rows.
    SettingError
        A name is unknown, or the named terms differ in their number of rows.
    """
    chosen = _longest(terms, axis) if names is None else _named(terms, names)
    for term in chosen:
        _refuse_without_rows(term, axis)
    lengths = {term.name: term.n_rows(axis) for term in chosen}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} has {n:,}" for name, n in lengths.items())
        raise SettingError(
            f"likelihood= names terms with different numbers of rows along axis {axis} ({listed}): "
            "name those of one length, the others are evaluated in full."
        )
    return chosen


def _longest(terms: Sequence[ModelTerm], axis: int) -> list[ModelTerm]:
    observed = [term for term in terms if term.kind == "observed"]
    if not observed:
        raise DataError(_nothing_observed([t for t in terms if t.kind == "potential"], axis))
    n_rows = max(term.n_rows(axis) for term in observed)
    draws = [term for term in observed if term.is_one_draw and term.n_values >= n_rows]
    if draws:
        return draws  # to be refused: it would be wrong to evaluate most of the data in full
    if n_rows < 2:
        return observed[:1]
    return [term for term in observed if term.n_rows(axis) == n_rows]


def _nothing_observed(potentials: Sequence[ModelTerm], axis: int) -> str:
    if potentials:
        longest = max(potentials, key=lambda term: term.n_rows(axis))
        if longest.n_rows(axis) > 1:
            return (
                "the model has no observed variable, and a potential cannot be told from a prior: "
                f"if {longest.name!r} is the likelihood, say so with likelihood={[longest.name]!r}."
            )
        return (
            f"the model has no observed variable, and potential {longest.name!r} of shape "
            f"{longest.shape} has no axis {axis} of rows: leave out its sum over the rows and name "
            f"it with likelihood={[longest.name]!r}, or give data with observed=."
        )
    return (
        "the model has no observed variable, so there are no rows to subsample: give data with "
        "observed=, or sample it with NUTS."
    )


def _named(terms: Sequence[ModelTerm], names: Sequence[str]) -> list[ModelTerm]:
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise SettingTypeError(
            f"likelihood={names!r} is not a list of names: give the names of observed variables or "
            "potentials, as in likelihood=['y']."
        )
    names = list(dict.fromkeys(names))
    candidates = {term.name: term for term in terms if term.kind != "prior"}
    if not names:
        raise SettingError(
            "likelihood=[] names no term to subsample: leave it out for the observed variables "
            f"with the most rows, or {choice_among('', candidates)}."
        )
    # PyMC splits a variable with missing values, and calls the observed part so.
    found = [n if n in candidates else f"{n}_observed" for n in names]
    for name, known_as in zip(names, found, strict=True):
        if known_as not in candidates:
            raise SettingError(
                f"likelihood= names {name!r}, which is not an observed variable or potential of "
                f"the model: {choice_among(name, candidates)}."
            )
    return [candidates[name] for name in found]


def _refuse_without_rows(term: ModelTerm, axis: int) -> None:
    what = f"{'potential' if term.kind == 'potential' else 'observed variable'} {term.name!r}"
    if term.is_one_draw:
        raise NotRowwiseError(
            f"{what} is one draw of {term.distribution} with a single log-density for its "
            f"{term.n_values:,} values, which does not split over rows: use NUTS for this model."
        )
    if 0 in term.shape:
        raise DataError(f"{what} has no values: build the model on data with at least two rows.")
    if term.n_rows(axis) < 2:
        raise NotRowwiseError(
            f"{what} has a log-density of shape {term.shape}, without an axis {axis} of two or "
            "more rows: name with likelihood= and axis= what has one entry per row, and leave out "
            "a sum over rows."
        )


def reading(terms: Sequence[ModelTerm], known: Known) -> list[str]:
    """Names of the observed variables whose log-density reads examples.

    Raises
    ------
    SettingError
        There are none.
    """
    names = [t.name for t in terms if t.kind == "observed" and known.reads_examples(t.plain)]
    if not names:
        raise SettingError(
            f"data= names {_listed(known.examples.variables)}, which no observed variable of the "
            "model reads: name what it observes, or a potential with likelihood=[...]."
        )
    return names


def refuse_examples_in(terms: Iterable[ModelTerm], known: Known) -> None:
    """Refuse terms that would be evaluated in full, on the example.

    Raises
    ------
    SettingError
        Names the term.
    """
    for term in terms:
        if known.reads_examples(term.plain):
            read = {known.examples.name_of(v) for v in ancestors([term.plain]) if v.owner is None}
            named = f"name it in likelihood=[..., {term.name!r}]"
            remedy = "give the prior numbers" if term.kind == "prior" else named
            raise SettingError(
                f"{term.name!r} reads {_listed(n for n in read if n)}, whose rows are in data=, "
                f"but is not split into rows: {remedy}, or leave it out of the model."
            )


def refuse_unread(examples: Examples, read: Mapping[str, Variable]) -> None:
    """Refuse data without a use.

    Parameters
    ----------
    examples : Examples
    read : mapping of str to variable
        Data that rows read.

    Raises
    ------
    SettingError
        Names the data that are not used.
    """
    unread = [name for name in examples.variables if name not in read]
    if unread:
        raise SettingError(
            f"data= names {_listed(unread)}, which the rows of the log-likelihood do not read: "
            "leave it out, or name in likelihood=[...] what reads it."
        )


def refuse_number_of_rows(graphs: Sequence[Variable], known: Known) -> None:
    """Refuse graphs that know the number of rows of the example, after they were cut.

    Raises
    ------
    NotRowwiseError
        Something depends on the number of rows.
    """
    for variable in ancestors(graphs):
        name = known.examples.name_of(variable) if variable.owner is None else None
        if name is not None:
            raise NotRowwiseError(
                f"the model reads the number of rows of {name!r}, which is that of an example: "
                "give it as a number, and leave total_size= out."
            )


def with_known_lengths(graphs: Sequence[Variable], known: Known) -> list[Variable]:
    """Put numbers in the place of lengths that do not change with the number of rows.

    Parameters
    ----------
    graphs : sequence of variables
        Of the rows and of all other terms, after they were cut.
    known : Known

    Returns
    -------
    list of variables
    """
    examples = [v for v in ancestors(graphs) if v.owner is None and known.examples.name_of(v)]
    lengths = [
        v for v in ancestors(graphs) if _is_length(v) and set(ancestors([v])) & set(examples)
    ]
    if not lengths:
        return list(graphs)
    arrays = [array_of(v) for v in examples]
    inputs = [TensorType(a.dtype, shape=(None, *a.shape[1:]))() for a in arrays]
    given = dict(zip(examples, inputs, strict=True))
    function = pytensor.function(
        [*known.parameters, *inputs],
        clone_replace(lengths, given, rebuild_strict=False),
        mode=OF_SHAPES,
        on_unused_input="ignore",
    )
    point = [known.start(v) for v in known.parameters]
    once, twice = (function(*point, *[np.concatenate([a] * k) for a in arrays]) for k in (1, 2))
    numbers = {
        v: pt.constant(np.asarray(n, dtype=v.dtype))
        for v, n, other in zip(lengths, once, twice, strict=True)
        if n == other
    }
    return list(clone_replace(list(graphs), numbers, rebuild_strict=False))


def _is_length(variable: Variable) -> bool:
    """Whether it is one number of a shape."""
    node = variable.owner
    if node is None or variable.type.ndim:
        return False
    if isinstance(node.op, Shape_i):
        return True
    of_shape = node.inputs[0].owner
    return (
        isinstance(node.op, Subtensor) and of_shape is not None and isinstance(of_shape.op, Shape)
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def refuse_simulators(model: pm.Model) -> None:
    """Refuse what no sampler of ``pm.sample`` can sample.

    Raises
    ------
    NotRowwiseError
        Names the variable whose log-density is random.
    """
    for variable in model.observed_RVs:
        if isinstance(variable.owner.op, SimulatorRV):
            raise random_error(variable.name)


def random_error(name: str) -> NotRowwiseError:
    """What is to be raised where the log-density of a variable is random."""
    return NotRowwiseError(
        f"the log-density of {name!r} is random, as that of pm.Simulator, so that it cannot be "
        "compared between points: use pm.sample_smc for this model."
    )


def refuse_not_finite(model: pm.Model) -> NoReturn:
    """Raise the error of a chain whose start has no density.

    Raises
    ------
    DataError
        Says what to do.
    """
    variables = [*model.basic_RVs, *model.potentials]
    graphs = inlined(model.logp(vars=variables, jacobian=True, sum=False))
    point = model.initial_point()
    terms = {variable.name: graph for variable, graph in zip(variables, graphs, strict=True)}
    refuse_overflow(terms, model.value_vars, [np.asarray(point[v.name]) for v in model.value_vars])
    raise DataError(
        "the log-density is not finite where this chain starts: model.point_logps() says which "
        "term it is; mend that term, or give other initvals to pm.sample."
    )


def rows_of_terms(model: pm.Model, names: Sequence[str]) -> dict[str, int]:
    """Number of log-densities of terms of the likelihood that are named, potentials for example.

    Raises
    ------
    NotRowwiseError, SettingError, SettingTypeError
        As in `chosen_terms`.
    """
    terms = terms_of(model, Known(model.value_vars, model.initial_point()))
    return {term.name: term.n_rows(0) for term in chosen_terms(terms, names, axis=0)}


def rows_observed(model: pm.Model) -> dict[str, int]:
    """Number of log-densities of every observed variable; those with axes 1, 2, ... count as well.

    Parameters
    ----------
    model : pymc.Model

    Notes
    -----
    A multivariate response is one row. What is a single draw, such as a series, has as many rows
    as its first axis has entries.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import rows_observed
    >>> with pm.Model() as model:
    ...     _ = pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.zeros(3))
    >>> rows_observed(model)
    {'y': 3}
    """
    return {rv.name: prod(_shape_of_rows(rv, model)) for rv in model.observed_RVs}


def _shape_of_rows(variable: Any, model: pm.Model) -> tuple[int, ...]:
    """Shape of an observed variable without the axes of one response; at least one axis."""
    value = model.rvs_to_values[variable]
    array = array_of(value)
    if array is None:
        lengths = pt.as_tensor(value, allow_xtensor_conversion=True).shape.eval()
    else:
        lengths = np.shape(array)
    shape = tuple(map(int, lengths))
    return shape[: max(1, len(shape) - getattr(variable.owner.op, "ndim_supp", 0))]
