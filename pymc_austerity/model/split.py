"""A model's log-density, split into a row-free part and a sum over rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Alloc,
    CAReduce,
    CheckAndRaise,
    DimShuffle,
    Elemwise,
    RandomGeneratorType,
    SharedVariable,
    TensorType,
    Variable,
    ancestors,
    clone_replace,
    computed_from,
    equal_computations,
    rebuilt,
    scalar_name,
    toposort,
)
from pymc_austerity.arguments import checked_axis
from pymc_austerity.errors import NotRowwiseError, SettingError
from pymc_austerity.model.compiling import NUMPY_MODE, AnyThread
from pymc_austerity.model.cut import (
    NO_EXAMPLES,
    CannotCut,
    Cut,
    Examples,
    Known,
    RowLeaf,
    refuse_work_on_all_rows,
)
from pymc_austerity.model.cut.known import behind, is_cast, is_view
from pymc_austerity.model.rearranging import FEW, MANY, axes_of_rows
from pymc_austerity.model.rewritten import counterpart, in_terms_of, on_full_data, spelled_out
from pymc_austerity.model.row_likelihood import (
    EvaluatedInFull,
    LeafRecipes,
    RowLikelihood,
    data_sources_of,
)
from pymc_austerity.model.terms import (
    ModelTerm,
    chosen_terms,
    random_error,
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

    By default, the entries of a matrix are rows where each reads one parameter of its row and one
    of its column.

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
    for term in terms:
        if any(isinstance(v.type, RandomGeneratorType) for v in ancestors([term.graph])):
            raise random_error(term.name)
    chosen = chosen_terms(
        terms, likelihood if likelihood or not given else reading(terms, known), axis
    )
    rest = [term for term in terms if term not in chosen]
    plain = spelled_out([term.plain for term in chosen], known)
    if not (given or likelihood or axis) and len({term.shape for term in chosen}) == 1:
        columns = [in_entries(graph, known) for graph in plain]
        if None not in columns:
            plain = columns
            chosen = [replace(t, graph=t.graph.ravel(), shape=(prod(t.shape),)) for t in chosen]
    known.learn_values(plain)
    n_rows = chosen[0].shape[axis]
    cut = Cut(known, n_rows)
    pairs = zip(chosen, plain, strict=True)
    rows = with_length([_cut(term, graph, cut, axis) for term, graph in pairs], cut)
    refuse_examples_in(rest, known)
    full = _sum([sum_over_others(term.graph, axis) for term in chosen])
    parts = spelled_out(_with_constant_lengths([term.graph for term in rest], whole), known)
    exact = _sum([part.sum() for part in parts] or [pt.constant(0.0)])
    leaves, recipes = tuple(cut.leaves), None
    if given:
        refuse_unread(given, {leaf.placeholder.name: leaf.placeholder for leaf in leaves})
        (rows, exact, *parts), leaves, recipes = with_recipes([rows, exact, *parts], leaves, known)
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
        sum_over_others(cut.take(term, axis), axis) for term, axis in zip(terms, axes, strict=True)
    ]
    refuse_work_on_all_rows(cut)
    return with_length(rows, cut), cut


def with_length(rows: Sequence[Variable], cut: Cut) -> Variable:
    """Sum of rows of a batch whose length is that of its data."""
    if not cut.leaves and not cut.known.examples:  # all rows are alike: their number is left
        cut.leaf(np.zeros(cut.n_rows, dtype=np.int8), "number", "number")
    if not cut.leaves:  # to be refused
        return _sum(rows)
    length = cut.leaves[0].placeholder.shape[0]
    return clone_replace(_sum(rows), {cut.batch_length: length}, rebuild_strict=False)


def _cut(term: ModelTerm, plain: Variable, cut: Cut, axis: int) -> Variable:
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
    return sum_over_others(rows, axis)


def _with_constant_lengths(graphs: list[Variable], model: pm.Model) -> list[Variable]:
    """Replace lengths of dimensions, which PyMC keeps in shared variables, by their values."""
    lengths = {
        length: pt.constant(length.get_value())
        for length in model.dim_lengths.values()
        if isinstance(length, SharedVariable)
    }
    return clone_replace(graphs, lengths, rebuild_strict=False) if lengths else graphs


def sum_over_others(log_density: Variable, axis: int) -> Variable:
    """Sum over all axes but one."""
    others = [k for k in range(log_density.type.ndim) if k != axis]
    return log_density.sum(axis=others) if others else log_density


def _sum(graphs: Sequence[Variable]) -> Variable:
    return pt.add(*graphs) if len(graphs) > 1 else graphs[0]


# ------------------------------------------------------------------ rows of examples


def with_recipes(
    graphs: Sequence[Variable], leaves: Sequence[RowLeaf], known: Known
) -> tuple[list[Variable], tuple[RowLeaf, ...], LeafRecipes]:
    """Rows in terms of leaves that are computed from any row, with the recipes of these.

    Parameters
    ----------
    graphs : sequence of variables
        The rows, and other graphs of the parameters and of the leaves' placeholders.
    leaves : sequence of RowLeaf
        The named data.
    known : Known
        Of the variables that they depend on.

    Raises
    ------
    NotRowwiseError
        A graph depends on the number of rows.
    """
    inputs = {leaf.placeholder.name: leaf.placeholder for leaf in leaves}
    rows, *others = with_known_lengths(graphs, known)
    refuse_number_of_rows([rows, *others], known)
    rows, computed = _computed_leaves(rows, leaves, known.parameters)
    return [rows, *others], computed, _recipes(computed, inputs)


def _recipes(leaves: Sequence[RowLeaf], inputs: Mapping[str, Variable]) -> LeafRecipes:
    """Compile the recipes of leaves from the placeholders of the named data."""
    given = list(inputs.values())
    computed = [leaf.recipe for leaf in leaves if leaf.recipe not in given]
    function = None
    if computed:
        function = pytensor.function(given, computed, mode=NUMPY_MODE, on_unused_input="ignore")
        function.trust_input = True
        function = AnyThread(function)
    places = [given.index(leaf.recipe) if leaf.recipe in given else None for leaf in leaves]
    return LeafRecipes(tuple(inputs), tuple(places), function)


def _computed_leaves(
    rows: Variable, leaves: Sequence[RowLeaf], parameters: Sequence[Variable]
) -> tuple[Variable, tuple[RowLeaf, ...]]:
    """Make leaves of variables that a row graph computes from its data alone.

    Parameters
    ----------
    rows : variable, shape (m,)
        Log-likelihoods of rows; a graph of parameters and of the leaves' placeholders.
    leaves : sequence of RowLeaf
        The named data.
    parameters : sequence of variables
        Value variables.

    Returns
    -------
    rows : variable
        The same, of the placeholders of the leaves that are left.
    leaves : tuple of RowLeaf
        Data that the graph reads directly, and computed ones.
    """
    data = {leaf.placeholder: leaf.array for leaf in leaves}
    made: list[tuple[Variable, RowLeaf, int]] = []
    placeholders: dict[Variable, Variable] = {}
    for variable in _largest_of_data(rows, list(data), parameters):
        known = next((m for m in made if equal_computations([m[0]], [variable])), None)
        if known is None and (computed := _computed(variable, data)) is not None:
            known = (variable, *computed)
            made.append(known)
        if known is not None:
            _, leaf, axis = known
            placeholders[variable] = (
                pt.moveaxis(leaf.placeholder, 0, axis) if axis else leaf.placeholder
            )
    (rows,) = clone_replace([rows], placeholders, rebuild_strict=False)
    read = set(ancestors([rows]))
    every = (*leaves, *(leaf for _, leaf, _ in made))
    return rows, tuple(leaf for leaf in every if leaf.placeholder in read)


def _largest_of_data(
    rows: Variable, data: Sequence[Variable], parameters: Sequence[Variable]
) -> list[Variable]:
    """Variables computed from data and combined with parameters, without views and casts."""
    by_row, beyond = (computed_from([rows], r, through_shapes=False) for r in (data, parameters))
    found: dict[Variable, None] = {}
    wanted = [rows] if rows not in beyond else []
    for node in toposort([rows]):
        if any(o in beyond for o in node.outputs):
            wanted += [i for i in node.inputs if i in by_row and i not in beyond]
    for variable in wanted:
        core = behind(variable, lambda v: is_view(v) or is_cast(v))
        worth = core.owner is not None and not isinstance(core.owner.op, Alloc)
        if worth and core in by_row and isinstance(core.type, TensorType):
            found[core] = None
    return list(found)


def _computed(variable: Variable, data: Mapping[Variable, NDArray]) -> tuple[RowLeaf, int] | None:
    """The leaf of a graph of data, and the axis of the rows; None where it has none."""
    given = list(data)
    function = pytensor.function(given, variable, mode=NUMPY_MODE, on_unused_input="ignore")
    with np.errstate(all="ignore"):
        few, many = (function(*[data[p][np.zeros(n, int)] for p in given]) for n in (FEW, MANY))
        axes = axes_of_rows(few, many)
        if len(axes) != 1:
            return None
        array = np.moveaxis(function(*data.values()), axes[0], 0)
    recipe = pt.moveaxis(variable, axes[0], 0) if axes[0] else variable
    placeholder = pt.tensor("computed", dtype=array.dtype, shape=(None, *array.shape[1:]))
    return RowLeaf(placeholder, array, is_computed=True, recipe=recipe), axes[0]


# ------------------------------------------------------------------ matrices


def in_entries(log_density: Variable, known: Known) -> Variable | None:
    """Log-densities of the entries of a matrix, one after the other.

    Where an entry reads one parameter of its row and one of its column, as the ability of a person
    and the difficulty of an item, a row of the matrix reads those of all columns.

    Parameters
    ----------
    log_density : variable, shape (n, k)
        In plain operations.
    known : Known
        Of the variables that it depends on.

    Returns
    -------
    variable, shape (n * k,), or None
        None where the rows of the matrix serve as well, or entries are not made one by one.
    """
    shape = known.shape(log_density)
    if len(shape) != 2 or min(shape) < 2:
        return None
    entries = _Entries(shape, known)
    try:
        column = entries.of(log_density, (0, 1))
    except CannotCut:
        return None
    if entries.along != {0, 1}:
        return None
    known.learn_shapes([column])
    return column


class _Entries:
    """Variables that are broadcast to a matrix, with an entry for each of the matrix.

    Attributes
    ----------
    along : set of int
        Axes along which entries read other parameters.
    """

    def __init__(self, shape: tuple[int, ...], known: Known) -> None:
        self.known, self._shape = known, shape
        self._places = [pt.constant(place.ravel()) for place in np.indices(shape)]
        self._made: dict[tuple[Variable, tuple[int, ...]], Variable] = {}
        self.along: set[int] = set()

    def of(self, variable: Variable, axes: tuple[int, ...]) -> Variable:
        """A vector; of length one where all entries read the same.

        Parameters
        ----------
        variable : variable
        axes : tuple of int
            The axis of the matrix that belongs to each of its own.
        """
        key = variable, axes
        if key not in self._made:
            self._made[key] = self._of(variable, axes)
        return self._made[key]

    def _of(self, variable: Variable, axes: tuple[int, ...]) -> Variable:
        node: Any = variable.owner if self.known.depends(variable) else None
        op = node.op if node is not None else None
        if isinstance(op, Elemwise):
            inputs = [self.of(i, axes) for i in node.inputs]
            return op.make_node(*inputs).outputs[node.outputs.index(variable)]
        if isinstance(op, Alloc):
            (value, *lengths) = node.inputs
            return self.of(value, axes[len(lengths) - value.type.ndim :])
        if isinstance(op, CheckAndRaise):
            value, *conditions = node.inputs
            return op(self.of(value, axes), *rebuilt(conditions, self._all))
        if isinstance(op, DimShuffle) and variable.type.ndim:
            (operand,), order = node.inputs, op.new_order
            own = [axes[order.index(k)] if k in order else 0 for k in range(operand.type.ndim)]
            return self.of(operand, tuple(own))
        return self._picked(variable, axes)

    def _all(self, node: Any, inputs: list[Variable]) -> list[Variable] | None:
        """That all entries of a matrix are true, of its entries one after the other."""
        if not isinstance(node.op, CAReduce) or scalar_name(node) != "AND":
            return None
        (matrix,) = node.inputs
        if node.outputs[0].type.ndim or self.known.shape(matrix) != self._shape:
            return None
        return [pt.all(self.of(matrix, (0, 1)))]

    def _picked(self, variable: Variable, axes: tuple[int, ...]) -> Variable:
        """What every entry reads of something that is not made entry by entry."""
        lengths = self.known.shape(variable)
        own = [k for k, length in enumerate(lengths) if length > 1]
        ones = [k for k, length in enumerate(lengths) if length == 1]
        if self.known.depends(variable) and own:
            if len(own) > 1 or self._reads_matrix(variable, lengths[own[0]]):
                raise CannotCut("its entries are not made one by one")
            self.along.add(axes[own[0]])
        vector = pt.specify_broadcastable(variable, *ones) if ones else variable
        order: list[Any] = [*own] or ["x"]
        vector = vector.dimshuffle(order)
        return vector[tuple(self._places[axes[k]] for k in own)] if own else vector

    def _reads_matrix(self, variable: Variable, length: int) -> bool:
        """Whether a row of data belongs to each of its entries, which would be repeated."""
        read = [i for v in self.known.dependent([variable]) if v.owner for i in v.owner.inputs]
        return any(
            not self.known.depends(i)
            and getattr(i.type, "ndim", 0) > 1
            and length in (shape := self.known.shape(i))
            and np.prod(shape, dtype=int) > length
            for i in read
        )
