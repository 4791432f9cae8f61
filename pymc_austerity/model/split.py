"""A model's log-density, split into a row-free part and a sum over rows."""

from collections.abc import Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    RandomGeneratorType,
    SharedVariable,
    Variable,
    ancestors,
    clone_replace,
)
from pymc_austerity.arguments import checked_axis
from pymc_austerity.errors import NotRowwiseError, SettingError
from pymc_austerity.model.cut import (
    NO_EXAMPLES,
    CannotCut,
    Cut,
    Examples,
    Known,
    refuse_work_on_all_rows,
)
from pymc_austerity.model.recipes import computed_leaves, leaf_recipes
from pymc_austerity.model.rewritten import counterpart, in_terms_of, on_full_data, spelled_out
from pymc_austerity.model.row_likelihood import EvaluatedInFull, RowLikelihood, data_sources_of
from pymc_austerity.model.terms import (
    Term,
    chosen_terms,
    reading,
    refuse_examples_in,
    refuse_number_of_rows,
    refuse_unread,
    terms_of,
    with_known_lengths,
)


def split_log_density(
    model: pm.Model,
    *,
    likelihood: Sequence[str] | None = None,
    axis: int = 0,
    point: Mapping[str, NDArray] | None = None,
    examples: Sequence[str] = (),
) -> RowLikelihood:
    """Split the log-density of a model into a row-free part and a sum over rows.

    Parameters
    ----------
    model : pymc.Model
        Any model; ``pm.Minibatch`` is undone.
    likelihood : sequence of str, optional
        Names of the observed variables or potentials to cut to rows. By default the observed
        variables with the most rows.
    axis : int
        Axis of the rows in their log-likelihood.
    point : dict of str to array, optional
        Values of the model's value variables, at which shapes are read. By default the initial
        point.
    examples : sequence of str
        Names of data that hold a few example rows only: a ``pm.Data``, or an observed variable.
        The leaves then have recipes, and the values of the example are not used.

    Returns
    -------
    RowLikelihood
        Row-free part, row part, and the data that the row part reads.

    Raises
    ------
    NotRowwiseError
        The likelihood of one row needs other rows, or an operation has no rule.
    DataError
        The model has no observed data.
    SettingError, SettingTypeError
        `likelihood` or `examples` names something unknown, or `axis` is not an axis.

    Notes
    -----
    Rows are pushed from the log-likelihood down to the data, one operation at a time, each by an
    identity ``f(x)[i] == f'(x[i])``. Parameter-free parts of the graph are evaluated once.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import split_log_density
    >>> x = np.linspace(-1.0, 1.0, 1_000)
    >>> with pm.Model() as model:
    ...     slope = pm.Normal("slope")
    ...     _ = pm.Normal("y", slope * x, 1.0, observed=2.0 * x)
    >>> split = split_log_density(model)
    >>> split.n_rows, split.subsampled
    (1000, ('y',))
    >>> [leaf.array.shape for leaf in split.leaves]
    [(1000,), (1000,)]
    """
    axis = checked_axis(axis)
    whole = on_full_data(model)
    if examples and whole is not model:
        raise SettingError(
            "data= is not possible with pm.Minibatch: give the model a few rows as a pm.Data."
        )
    given = Examples.named(model, examples) if examples else NO_EXAMPLES
    known = Known(whole.value_vars, model.initial_point() if point is None else point, given)
    terms = terms_of(whole, known)
    _refuse_random(terms)
    chosen = chosen_terms(
        terms, likelihood if likelihood or not given else reading(terms, known), axis
    )
    plain = spelled_out([term.plain for term in chosen], known)
    known.learn_values(plain)
    n_rows = chosen[0].shape[axis]
    cut = Cut(known, n_rows)
    pairs = zip(chosen, plain, strict=True)
    rows = with_length([_cut(term, graph, cut, axis) for term, graph in pairs], cut)
    rest = [term for term in terms if term not in chosen]
    refuse_examples_in(rest, known)
    full = _sum([_sum_over_others(term.graph, axis) for term in chosen])
    parts = spelled_out(_with_constant_lengths([term.graph for term in rest], whole), known)
    exact = _sum([part.sum() for part in parts] or [pt.constant(0.0)])
    leaves, recipes = tuple(cut.leaves), None
    if given:
        rows, exact, *parts = with_known_lengths([rows, exact, *parts], known)
        inputs = {leaf.placeholder.name: leaf.placeholder for leaf in leaves}
        refuse_unread(given, inputs)
        refuse_number_of_rows([rows, exact, *parts], known)
        rows, leaves = computed_leaves(rows, leaves, known.parameters)
        recipes = leaf_recipes(leaves, inputs)
    rows, full, exact, *parts = in_terms_of(model, whole, [rows, full, exact, *parts])
    return RowLikelihood(
        model=model,
        value_vars=tuple(model.value_vars),
        row_free=exact,
        row_free_terms=tuple(parts),
        rows=rows,
        full=full,
        leaves=leaves,
        n_rows=n_rows,
        subsampled=tuple(term.name for term in chosen),
        evaluated_in_full=tuple(EvaluatedInFull(t.name, t.kind, t.shape) for t in rest),
        local_variables=frozenset(counterpart(v, model) for v in cut.local),
        data_sources=data_sources_of([term.graph for term in chosen], model),
        examples=given,
        recipes=recipes,
    )


def cut_terms(
    terms: Sequence[Variable], axes: Sequence[int], known: Known, n_rows: int
) -> tuple[Variable, Cut]:
    """The sum of some terms as rows, and the cut that made it.

    Parameters
    ----------
    terms : sequence of variables
        In plain operations, with a known shape.
    axes : sequence of int
        The axis of the rows in each.
    known : Known
        Of the variables that they depend on.
    n_rows : int

    Raises
    ------
    CannotCut
        Rows need other rows.
    """
    cut = Cut(known, n_rows)
    rows = [
        _sum_over_others(cut.take(term, axis), axis) for term, axis in zip(terms, axes, strict=True)
    ]
    refuse_work_on_all_rows(cut)
    return with_length(rows, cut), cut


def with_length(rows: Sequence[Variable], cut: Cut) -> Variable:
    """Sum of rows of a batch whose length is that of its data."""
    if (
        not cut.leaves and not cut.known.examples
    ):  # all rows are alike, and only their number is left to be told
        cut.leaf(np.zeros(cut.n_rows, dtype=np.int8), "number", "number")
    if not cut.leaves:  # to be refused
        return _sum(rows)
    length = cut.leaves[0].placeholder.shape[0]
    return clone_replace(_sum(rows), {cut.batch_length: length}, rebuild_strict=False)


def _cut(term: Term, plain: Variable, cut: Cut, axis: int) -> Variable:
    """Log-likelihoods of the rows of the batch, shape (m,), of a term in plain operations."""
    try:
        rows = cut.take(plain, axis)
        refuse_work_on_all_rows(cut)
    except CannotCut as refusal:
        remedy = (
            "write it so that each row needs no more than its own data in data= and the parameters"
            if cut.known.examples
            else "use NUTS for this model, or rewrite it so that each row needs no more than its "
            "own data and the parameters"
        )
        what = "potential" if term.kind == "potential" else "observed variable"
        raise NotRowwiseError(
            f"the log-likelihood of {what} {term.name!r} cannot be evaluated on a mini-batch "
            f"because {refusal.reason}: {refusal.remedy or remedy}."
        ) from None
    return _sum_over_others(rows, axis)


def _refuse_random(terms: Sequence[Term]) -> None:
    for term in terms:
        if any(isinstance(v.type, RandomGeneratorType) for v in ancestors([term.graph])):
            raise NotRowwiseError(
                f"the log-density of {term.name!r} is random, as that of pm.Simulator, so that it "
                "cannot be compared between points: use pm.sample_smc for this model."
            )


def _with_constant_lengths(graphs: list[Variable], model: pm.Model) -> list[Variable]:
    """Replace lengths of dimensions, which PyMC keeps in shared variables, by their values."""
    lengths = {
        length: pt.constant(length.get_value())
        for length in model.dim_lengths.values()
        if isinstance(length, SharedVariable)
    }
    return clone_replace(graphs, lengths, rebuild_strict=False) if lengths else graphs


def _sum_over_others(log_density: Variable, axis: int) -> Variable:
    others = [k for k in range(log_density.type.ndim) if k != axis]
    return log_density.sum(axis=others) if others else log_density


def _sum(graphs: Sequence[Variable]) -> Variable:
    return pt.add(*graphs) if len(graphs) > 1 else graphs[0]
