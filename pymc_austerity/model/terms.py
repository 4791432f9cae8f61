"""The terms of a model's log-density, and which of them to cut to rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_austerity._pymc import Variable
from pymc_austerity.arguments import choice_among
from pymc_austerity.errors import DataError, NotRowwiseError, SettingError, SettingTypeError
from pymc_austerity.model.cut import Known, static_data
from pymc_austerity.model.inline import inlined
from pymc_austerity.model.widened import refuse_overflow, widened

__all__ = ["Term", "checked_axis", "choose", "terms_of"]


@dataclass(frozen=True, eq=False)
class Term:
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


def checked_axis(axis: Any) -> int:
    """Return an axis, or say in one sentence what it should be."""
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise SettingTypeError(
            f"axis={axis!r} is not the number of an axis: give 0 if the rows are the first axis of "
            "the observed data, 1 if they are the second."
        )
    if axis < 0:
        raise SettingError(
            f"axis={axis} counts from the end: count the axis of the rows from the front, 0 for "
            "the first."
        )
    return int(axis)


def terms_of(model: pm.Model, known: Known) -> list[Term]:
    """All terms of the log-density; `known` learns the shapes and values of the likelihood."""
    variables = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    kinds = (
        ["prior"] * len(model.free_RVs)
        + ["observed"] * len(model.observed_RVs)
        + ["potential"] * len(model.potentials)
    )
    log_densities = model.logp(vars=variables, jacobian=True, sum=False) if variables else []
    graphs = [pt.as_tensor(graph, allow_xtensor_conversion=True) for graph in log_densities]
    given = inlined(graphs)
    refuse_overflow(
        {v.name: graph for v, graph in zip(variables, given, strict=True)},
        model.value_vars,
        [known.start(v).astype(v.dtype) for v in model.value_vars],
    )
    graphs = widened(given)
    plain = inlined(static_data(graphs))
    known.learn_shapes(plain)
    return [
        Term(
            name=variable.name,
            kind=kind,
            distribution=_distribution(variable) if kind != "potential" else "",
            graph=graph,
            plain=p,
            shape=known.shape(p),
            n_values=_n_values(model, variable, known) if kind == "observed" else 0,
        )
        for variable, kind, graph, p in zip(variables, kinds, graphs, plain, strict=True)
    ]


def _distribution(variable: Variable) -> str:
    name = type(variable.owner.op).__name__ if variable.owner is not None else ""
    return name.removesuffix("RV")


def _n_values(model: pm.Model, variable: Variable, known: Known) -> int:
    return int(np.prod(known.shape(model.rvs_to_values[variable])))


# ------------------------------------------------------------------ the choice


def choose(terms: Sequence[Term], names: Sequence[str] | None, axis: int) -> list[Term]:
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


def _longest(terms: Sequence[Term], axis: int) -> list[Term]:
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


def _nothing_observed(potentials: Sequence[Term], axis: int) -> str:
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


def _named(terms: Sequence[Term], names: Sequence[str]) -> list[Term]:
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


def _refuse_without_rows(term: Term, axis: int) -> None:
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
