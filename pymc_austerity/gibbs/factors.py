"""The factors of every binary entry, in random order, stored once for all chains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError
from pymc_austerity.gibbs.gathered import GatheredDifferences, compile_gathered_differences
from pymc_austerity.gibbs.touching import touching_rows
from pymc_austerity.gibbs.verify_touching import verify_touching
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.problem import Problem

__all__ = ["Factors", "find_factors"]


@dataclass(frozen=True)
class Factors:
    """Factors of every entry, and the functions that evaluate them.

    Attributes
    ----------
    functions : GatheredDifferences
        Differences of the factors, selected by position, and of the exact part.
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
