"""The factors of every binary entry, in random order, stored once for all chains."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Constant,
    SharedVariable,
    Variable,
    ancestors,
    clone_replace,
    join_nonshared_inputs,
)
from pymc_austerity.errors import SettingError
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.row_likelihood import RowLikelihood
from pymc_austerity.paper.factor_graph import touching_rows, verify_touching
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.problem import Problem

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
    order, starts, sizes = _listed(touching, n_rows, rng)
    orders = SharedRows([order.astype(dtype)], np.arange(order.size))
    is_analysed = any(own is not None for own in touching)
    functions = replace(functions, leaves=[], tables=[])  # which are stored now
    factors = Factors(functions, rows, tables, orders, starts, sizes, is_analysed)

    def differences(proposed: NDArray, current: NDArray, chosen: NDArray) -> NDArray[np.float64]:
        values = functions.values()
        return functions.rows(proposed, current, chosen.astype(dtype), *factors.data, *values)

    verify_touching(touching, differences, n_rows, rng=prepared.rng, dtype=problem.start.dtype)
    return factors


def _listed(
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
