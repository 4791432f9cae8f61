"""The factors of every binary entry: found in the graph, verified, stored once for all chains."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Constant,
    DimShuffle,
    Elemwise,
    JoinDims,
    Mode,
    Reshape,
    SharedVariable,
    SpecifyShape,
    SplitDims,
    Subtensor,
    Switch,
    Variable,
    ancestors,
    clone_replace,
    computed_from,
    join_nonshared_inputs,
)
from pymc_austerity.errors import NotRowwiseError, SettingError
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.row_likelihood import RowLikelihood
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.problem import Problem

_VALUES = Mode(linker="py", optimizer=None)
_REARRANGING = (DimShuffle, Reshape, SpecifyShape, Subtensor, JoinDims, SplitDims)
_BLOCK = 65_536
_Conditions: TypeAlias = tuple[tuple[Variable, bool], ...]
"""Conditions on the rows for which a path through the graph matters."""

_MOST_GROUPS = 64


@dataclass(frozen=True)
class Touches:
    """Rows that each entry of a variable touches.

    Attributes
    ----------
    rows : int array
        Rows touched by entry 0, by entry 1 and so on, each list in increasing order.
    ends : int array, shape (size + 1,)
        Entry ``j`` touches ``rows[ends[j] : ends[j + 1]]``.
    """

    rows: NDArray[np.int64]
    ends: NDArray[np.int64]

    def of(self, entry: int) -> NDArray[np.int64]:
        """Rows that one entry touches."""
        return self.rows[self.ends[entry] : self.ends[entry + 1]]


def touching_rows(
    row_likelihood: RowLikelihood,
    variable: Variable,
    shape: Sequence[int],
    arrays: Sequence[NDArray] | None = None,
) -> Touches | None:
    """Rows whose log-likelihood can change with each entry of a variable.

    Every path from the variable to the log-likelihood of the rows must lead through an advanced
    index by data of the row, such as ``x[i]`` with one index per row: a row then depends only on
    the entries that its indices select. Operations before it, entry by entry (``2 * x - 1``, a
    reshape), or after it, row by row, do not matter.

    Parameters
    ----------
    row_likelihood : RowLikelihood
        A split log-density.
    variable : variable
        One of its value variables.
    shape : tuple of int
        Shape of the variable; entries are counted as in its raveled form.
    arrays : sequence of arrays, optional
        Data of the rows, if they are not stored in the user's order.

    Returns
    -------
    Touches or None
        None if the graph does not determine them; then any row may change with any entry.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.paper.factors import touching_rows
    >>> from pymc_austerity.model import split_log_density
    >>> with pm.Model() as model:
    ...     x = pm.Bernoulli("x", 0.5, shape=3)
    ...     _ = pm.Potential("pairs", 0.7 * x[np.array([0, 1])] * x[np.array([1, 2])])
    >>> split = split_log_density(model, likelihood=["pairs"])
    >>> touches = touching_rows(split, model.rvs_to_values[x], (3,))
    >>> [touches.of(entry).tolist() for entry in range(3)]
    [[0], [0, 1], [1]]
    """
    paths = _Paths(row_likelihood, variable, shape)
    found = paths.reads()
    if found is None:
        return None
    data = row_likelihood.arrays if arrays is None else list(arrays)
    return _listed(paths, found, data, row_likelihood.n_rows, int(np.prod(shape, dtype=int)))


class _Paths:
    """Walk from the log-likelihood of the rows back to a variable."""

    def __init__(self, split: RowLikelihood, variable: Variable, shape: Sequence[int]) -> None:
        self.rows = split.rows
        self.variable = variable
        self.placeholders = [leaf.placeholder for leaf in split.leaves]
        self.numbers = pt.tensor("numbers", dtype="int64", shape=tuple(shape))
        self.entries = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        self._touched = computed_from([split.rows], [variable])
        self._by_row = computed_from([split.rows], self.placeholders)
        self._by_parameter = computed_from([split.rows], split.value_vars)

    def reads(self) -> list[tuple[Variable, _Conditions]] | None:
        """Entry numbers that rows read, shape (..., rows, ...), and the rows that read them."""
        found: list[tuple[Variable, _Conditions]] = []
        seen: set[tuple[Variable, _Conditions]] = set()
        stack: list[tuple[Variable, _Conditions]] = [(self.rows, ())]
        while stack:
            top = stack.pop()
            variable, conditions = top
            if top in seen or variable not in self._touched:
                continue
            seen.add(top)
            if variable not in self._by_row:
                return None
            if self._is_pick(variable.owner):
                numbers = self._rearranged(variable)
                if numbers is None:
                    return None
                found.append((numbers, conditions))
            else:
                stack.extend(self._inputs(variable.owner, conditions))
        return found

    def _is_pick(self, node: Any) -> bool:
        """Whether data of the rows select entries of a variable that has no rows."""
        operand, *indices = node.inputs
        return (
            isinstance(node.op, ADVANCED_SUBTENSOR_OPS)
            and operand in self._touched
            and operand not in self._by_row
            and not any(index in self._by_parameter for index in indices)
        )

    def _inputs(self, node: Any, conditions: _Conditions) -> Iterator[tuple[Variable, _Conditions]]:
        is_switch = isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Switch)
        if is_switch and node.inputs[0] in self._by_row - self._by_parameter:
            condition, then, otherwise = node.inputs
            yield then, (*conditions, (condition, True))
            yield otherwise, (*conditions, (condition, False))
        else:
            yield from ((variable, conditions) for variable in node.inputs)

    def _numbers(self, variable: Variable) -> Variable | None:
        """Entry from which each entry of a variable without rows is computed, if only one."""
        if variable is self.variable:
            return self.numbers
        node = variable.owner
        if isinstance(node.op, Elemwise):
            return self._same(node, variable)
        return self._rearranged(variable)

    def _same(self, node: Any, output: Variable) -> Variable | None:
        inputs = [i for i in node.inputs if i in self._touched]
        numbers = {self._numbers(i) for i in inputs}
        whole = all(i.type.broadcastable == output.type.broadcastable for i in inputs)
        return numbers.pop() if whole and len(numbers) == 1 else None

    def _rearranged(self, variable: Variable) -> Variable | None:
        node = variable.owner
        operand, *others = node.inputs
        if not isinstance(node.op, (*_REARRANGING, *ADVANCED_SUBTENSOR_OPS)):
            return None
        if operand not in self._touched or any(i in self._by_parameter for i in others):
            return None
        numbers = self._numbers(operand)
        op: Any = node.op
        return None if numbers is None else op.make_node(numbers, *others).outputs[0]


def _listed(
    paths: _Paths,
    found: list[tuple[Variable, _Conditions]],
    data: list[NDArray],
    n_rows: int,
    size: int,
) -> Touches | None:
    """The rows of every entry, from the entries of every row."""
    conditions = list(dict.fromkeys(c for _, path in found for c, _ in path))
    graphs = [numbers for numbers, _ in found] + conditions
    evaluated = _by_row(graphs, paths, data, n_rows)
    if evaluated is None:
        return None
    values = dict(zip(conditions, evaluated[len(found) :], strict=True))
    keys = [np.empty(0, dtype=np.int64)]
    for read, (_, path) in zip(evaluated, found, strict=False):
        met = np.ones(n_rows, dtype=bool)
        for condition, wanted in path:
            met &= (values[condition].astype(bool) == wanted).any(axis=1)
        rows = np.flatnonzero(met)
        keys.append(np.unique(read[rows].astype(np.int64) * n_rows + rows[:, None]))
    key = np.unique(np.concatenate(keys))
    ends = np.searchsorted(key, np.arange(size + 1, dtype=np.int64) * n_rows)
    return Touches(key % n_rows, ends)


def _by_row(
    graphs: list[Variable], paths: _Paths, data: list[NDArray], n_rows: int
) -> list[NDArray] | None:
    """Values of graphs of the data, each of shape (n_rows, k); None where the rows have no axis."""
    evaluate = pytensor.function(
        [paths.numbers, *paths.placeholders], graphs, mode=_VALUES, on_unused_input="ignore"
    )

    def values(rows: NDArray[np.int64] | slice) -> list[NDArray]:
        return list(evaluate(paths.entries, *[array[rows] for array in data]))

    axes = []
    first = np.zeros(2, dtype=np.int64)
    for one, two in zip(values(first[:1]), values(first), strict=True):
        differing = [k for k in range(one.ndim) if one.shape[k] != two.shape[k]]
        if len(differing) != 1:
            return None
        axes.append(differing[0])
    blocks = [values(slice(start, start + _BLOCK)) for start in range(0, n_rows, _BLOCK)]
    return [
        np.concatenate([np.moveaxis(b, axis, 0).reshape(b.shape[axis], -1) for b in pieces])
        for axis, pieces in zip(axes, zip(*blocks, strict=True), strict=True)
    ]


def verify_touching(
    touching: Sequence[NDArray[np.integer] | None],
    differences: Callable[[NDArray, NDArray, NDArray[np.int64]], NDArray[np.float64]],
    n_rows: int,
    *,
    rng: np.random.Generator,
    dtype: np.dtype,
    max_rows: int = 10_000,
) -> None:
    """Flip entries at random configurations, and check that only rows that they touch change.

    Entries are flipped one at a time, in pairs, in fours and so on up to half of them, each time at
    a new random configuration, and the rows that none of the flipped entries touches are
    compared.

    Parameters
    ----------
    touching : sequence of int arrays or None
        Rows that each binary entry touches; None for all rows.
    differences : callable
        ``f(proposed, current, rows)``: differences of the log-likelihoods, nats.
    n_rows : int
        Number of rows.
    rng : numpy.random.Generator
        Source of configurations and rows.
    dtype : dtype
        Type of a configuration.
    max_rows : int
        Number of rows that are compared at each configuration.

    Raises
    ------
    NotRowwiseError
        A row changes that none of the flipped entries touches.
    """
    free = np.flatnonzero([rows is not None for rows in touching])
    if free.size == 0:
        return
    for flipped in _groups(free, rng):
        current = rng.integers(0, 2, size=len(touching)).astype(dtype)
        proposed = current.copy()
        proposed[flipped] = 1 - proposed[flipped]
        untouched = np.ones(n_rows, dtype=bool)
        for entry in flipped:
            untouched[touching[entry]] = False
        rows = np.flatnonzero(untouched)
        if rows.size > max_rows:
            rows = np.sort(rng.choice(rows, size=max_rows, replace=False))
        if rows.size:
            _refuse_change(differences(proposed, current, rows))


def _groups(entries: NDArray[np.intp], rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Groups of entries of doubling sizes; every entry once in each size, up to some groups."""
    size = 1
    while size <= max(entries.size // 2, 1):
        shuffled = rng.permutation(entries)
        for start in range(0, min(entries.size, size * _MOST_GROUPS), size):
            yield shuffled[start : start + size]
        size *= 2


def _refuse_change(changes: NDArray[np.float64]) -> None:
    known = changes[~np.isnan(changes)]  # a row that is impossible before and after says nothing
    if np.any(known != 0.0):
        raise NotRowwiseError(
            "a factor changes with a variable that it does not read according to the model's "
            "graph, so the factors that an update needs are unknown: leave the variable to "
            "pm.BinaryGibbsMetropolis."
        )


_LARGE = 1_000
"""Entries above which a constant is passed at every call instead of being compiled in."""


@dataclass(frozen=True)
class GatheredDifferences:
    """Functions of two points, both raveled vectors of shape (d,).

    Attributes
    ----------
    rows : callable
        ``rows(proposed, current, positions, *leaves, *tables, *shared)``: differences of the
        log-likelihoods of the rows at some positions, float64 array, shape (m,), nats.
    exact : callable
        ``exact(proposed, current, *shared)``: difference of the row-free part, float64, 0-d, nats.
    leaves : list of arrays, each of shape (n_rows, ...)
        Data of the rows, in the user's order; integers use as few bytes as possible.
    tables : list of arrays
        Large constants of the row part other than data of the rows.
    shared : list of shared variables
        Other inputs of the functions: values of variables of other step methods, and data of the
        row-free part. `values` reads them.
    """

    rows: Callable[..., NDArray[np.float64]]
    exact: Callable[..., NDArray[np.float64]]
    leaves: list[NDArray]
    tables: list[NDArray]
    shared: list[Any]

    def values(self) -> tuple[NDArray, ...]:
        """Current values of the shared variables."""
        return tuple([np.asarray(v.get_value(borrow=True), order="C") for v in self.shared])


def compile_gathered_differences(
    row_likelihood: RowLikelihood,
    vars: Sequence[Variable],
    shared: Mapping[Variable, Variable],
    point: Mapping[str, NDArray],
    *,
    positions_dtype: Any = np.int64,
    compile_kwargs: dict[str, Any] | None = None,
) -> GatheredDifferences:
    """Compile differences between two points that take their rows by position.

    Everything that the compiled functions read is an argument, so that they can be called from
    other compiled code.

    Parameters
    ----------
    row_likelihood, vars, shared, point, compile_kwargs
        As in `compile_row_differences`.
    positions_dtype : dtype
        Type of the positions.

    Returns
    -------
    GatheredDifferences
        They do not check their inputs, which must be arrays of the right dtype.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.paper.factors import compile_gathered_differences
    >>> from pymc_austerity.model import split_log_density
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1.0, observed=np.arange(10.0))
    >>> split = split_log_density(model)
    >>> differences = compile_gathered_differences(
    ...     split, model.value_vars, {}, model.initial_point(),
    ...     compile_kwargs={"mode": "FAST_COMPILE"},
    ... )
    >>> positions = np.array([0, 2])
    >>> leaves = differences.leaves
    >>> differences.rows(np.array([1.0]), np.array([0.0]), positions, *leaves)
    array([-0.5,  1.5])
    """
    positions = pt.tensor("positions", dtype=positions_dtype, shape=(None,))
    leaves = [_narrow(array) for array in row_likelihood.arrays]
    wholes = [pt.tensor(dtype=array.dtype, shape=(None, *array.shape[1:])) for array in leaves]
    picked = {
        leaf.placeholder: whole[positions].astype(leaf.placeholder.dtype)
        for leaf, whole in zip(row_likelihood.leaves, wholes, strict=True)
    }
    (rows,) = clone_replace([row_likelihood.rows], picked, rebuild_strict=False)
    graphs, current = join_nonshared_inputs(
        dict(point), [rows, row_likelihood.row_free], list(vars), dict(shared)
    )
    proposed = current.type("proposed")
    moved = clone_replace(graphs, {current: proposed}, rebuild_strict=False)
    differences = [(m - g).astype("float64") for m, g in zip(moved, graphs, strict=True)]
    constants = _large_constants(differences[0])
    others = [v for v in ancestors(differences) if isinstance(v, SharedVariable)]
    tables, values = [_argument(v) for v in constants], [_argument(v) for v in others]
    arguments = dict(zip([*constants, *others], [*tables, *values], strict=True))
    rows, exact = clone_replace(differences, arguments, rebuild_strict=False)
    model = row_likelihood.model
    inputs = [proposed, current, positions, *wholes, *tables, *values]
    rows_function = compiled(model, inputs, rows, compile_kwargs)
    row_free_function = compiled(model, [proposed, current, *values], exact, compile_kwargs)
    arrays = [np.array(constant.data, order="C") for constant in constants]
    return GatheredDifferences(rows_function, row_free_function, leaves, arrays, others)


def _narrow(array: NDArray) -> NDArray:
    """Integers in few bytes: rows are read at random, and more of them fit the cache."""
    if array.dtype.kind not in "iu":
        return array
    smallest, largest = int(array.min()), int(array.max())
    return array.astype(np.promote_types(np.min_scalar_type(smallest), np.min_scalar_type(largest)))


def _large_constants(graph: Variable) -> list[Variable]:
    return [
        v
        for v in ancestors([graph])
        if isinstance(v, Constant) and isinstance(v.data, np.ndarray) and v.data.size >= _LARGE
    ]


def _argument(variable: Variable) -> Variable:
    """An input of the same type, without a value, in place of a constant or shared variable."""
    return pt.tensor(dtype=variable.type.dtype, shape=variable.type.shape)


@dataclass(frozen=True)
class Factors:
    """Factors of every entry, and the functions that evaluate them.

    Attributes
    ----------
    functions : GatheredDifferences
        Differences of the factors, selected by position, and of the row-free part.
    rows, tables : SharedRows, list of SharedRows
        Data of all factors; large constants.
    orders : SharedRows
        One array: positions of the factors of each entry, entry by entry. Entries that all factors
        touch share one list.
    starts, sizes : int array, shape (d,)
        Where the list of an entry starts in that array, and its length.
    is_analysed : bool
        Whether some entries have only some of the factors.
    """

    functions: GatheredDifferences
    rows: SharedRows
    tables: list[SharedRows]
    orders: SharedRows
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    is_analysed: bool

    @property
    def data(self) -> tuple[NDArray, ...]:
        """Arguments of the row function after the positions, except for the shared values."""
        whole = self.rows.window(0, self.rows.n_rows)
        return (*whole, *(table.window(0, table.n_rows)[0] for table in self.tables))

    @property
    def order(self) -> NDArray[np.integer]:
        """The array of `orders`."""
        return self.orders.window(0, self.orders.n_rows)[0]

    def is_possible(self, candidate: NDArray, start: NDArray) -> bool:
        """Whether the log-density at a point is finite as it is at the start; reads all rows."""
        values = self.functions.values()
        if not np.isfinite(self.functions.exact(candidate, start, *values)):
            return False
        positions = np.arange(self.rows.n_rows, dtype=self.order.dtype)
        changes = self.functions.rows(candidate, start, positions, *self.data, *values)
        return bool(np.isfinite(changes).all())


def find_factors(problem: Problem, *, shuffle: bool) -> Factors:
    """Find out which factors touch which entry, verify this, and store the factors.

    With `shuffle`, the factors of every entry are in random order; otherwise they are in the user's
    order, in which reading all of them is faster.

    Raises
    ------
    SettingError
        No factor touches any of the variables.
    NotRowwiseError
        The numbers do not agree with the model's graph.
    """
    prepared, variables = problem.prepared, problem.variables
    split, point = prepared.likelihood, prepared.point
    dtype = np.int32 if split.n_rows < np.iinfo(np.int32).max else np.int64
    functions = compile_gathered_differences(
        *problem.parts, positions_dtype=dtype, compile_kwargs=problem.compile_kwargs
    )
    n_rows, rng = split.n_rows, prepared.rng if shuffle else None
    rows = SharedRows(
        functions.leaves, np.arange(n_rows) if rng is None else rng.permutation(n_rows)
    )
    tables = [SharedRows([table], np.arange(len(table))) for table in functions.tables]
    data = rows.window(0, n_rows)
    touching: list[NDArray | None] = []
    for variable in variables:
        shape = np.shape(point[variable.name])
        touches = touching_rows(split, variable, shape, data)
        entries = range(int(np.prod(shape, dtype=int)))
        touching += [None if touches is None else touches.of(entry) for entry in entries]
    _refuse_untouched(touching, variables, split.subsampled)
    order, starts, sizes = _joined(touching, n_rows, rng)
    orders = SharedRows([order.astype(dtype)], np.arange(order.size))
    is_analysed = any(own is not None for own in touching)
    functions = replace(functions, leaves=[], tables=[])  # which are stored now
    factors = Factors(functions, rows, tables, orders, starts, sizes, is_analysed)

    def differences(proposed: NDArray, current: NDArray, chosen: NDArray) -> NDArray[np.float64]:
        values = functions.values()
        return functions.rows(proposed, current, chosen.astype(dtype), *factors.data, *values)

    verify_touching(touching, differences, n_rows, rng=prepared.rng, dtype=problem.start.dtype)
    return factors


def _joined(
    touching: list[NDArray | None], n_rows: int, rng: np.random.Generator | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """One array of all lists, with the start and length of each."""
    whole = np.arange(n_rows) if any(own is None for own in touching) else np.arange(0)
    lists, starts, sizes, end = [whole], [], [], whole.size
    for own in touching:
        if own is None:  # the rows themselves are in random order
            starts.append(0)
            sizes.append(n_rows)
        else:
            lists.append(own if rng is None else rng.permutation(own))
            starts.append(end)
            sizes.append(own.size)
            end += own.size
    return np.concatenate(lists), np.array(starts), np.array(sizes)


def _refuse_untouched(
    touching: list[NDArray | None], variables: Sequence, subsampled: Sequence[str]
) -> None:
    if all(own is not None and own.size == 0 for own in touching):
        raise SettingError(
            f"no factor of {', '.join(map(repr, subsampled))} reads "
            f"{', '.join(repr(v.name) for v in variables)}, so there is nothing to subsample: name "
            "the potential or observed variable that does with likelihood=[...]."
        )
