"""Where enclosures are evaluated: points, boxes about rows, and boxes that hold many rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.operations.jets import Interval, point

_FAR = 1e6


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of predictors and intervals of data.

    Attributes
    ----------
    center, lower, upper : float array, shape (n, k)
        A point of each box, and its ends.
    data : dict of variable to Interval
        Intervals of the data of the rows in each cell.
    examples : dict of variable to array
        The data of one row in each cell, in their own types.
    """

    center: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    data: Mapping[Variable, Interval]
    examples: Mapping[Variable, NDArray]

    @cached_property
    def are_points(self) -> bool:
        """Whether every box is one point."""
        return self.lower is self.upper


def _points(data: Mapping[Variable, NDArray]) -> dict[Variable, Interval]:
    return {v: point(np.asarray(x, dtype=np.float64)) for v, x in data.items()}


def at_points(center: NDArray[np.float64], data: Mapping[Variable, NDArray]) -> Boxes:
    """One cell for each row, which is a point."""
    return Boxes(center, center, center, _points(data), data)


def about_rows(
    center: NDArray[np.float64], half_widths: NDArray[np.float64], data: Mapping[Variable, NDArray]
) -> Boxes:
    """One cell for each row, which is a box about its predictors."""
    return Boxes(center, center - half_widths, center + half_widths, _points(data), data)


def about_groups(
    groups: list[NDArray[np.intp]],
    center: NDArray[np.float64],
    half_widths: NDArray[np.float64],
    data: Mapping[Variable, NDArray],
) -> Boxes:
    """One cell for each group of rows, which holds the boxes of all its rows."""
    order = np.concatenate(groups)
    sizes = np.array([len(rows) for rows in groups])
    starts = np.cumsum(sizes) - sizes
    lower = np.minimum.reduceat((center - half_widths)[order], starts)
    upper = np.maximum.reduceat((center + half_widths)[order], starts)
    first, n_rows = order[starts], len(center)
    intervals, examples = {}, {}
    for v, values in data.items():
        if np.ndim(values) == 0 or len(values) != n_rows:
            intervals[v], examples[v] = point(np.asarray(values, dtype=np.float64)), values
        else:
            ordered = np.asarray(values[order], dtype=np.float64)
            ends = np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)
            intervals[v] = point(ends[0]) if np.array_equal(*ends) else Interval(*ends)
            examples[v] = values[first]
    return Boxes(center[first], lower, upper, intervals, examples)


def groups_of_like_rows(
    columns: list[NDArray], same: Sequence[NDArray] = (), *, size: int
) -> list[NDArray[np.intp]]:
    """Cut rows into groups of like rows, by halving along the widest column.

    Parameters
    ----------
    columns : list of float arrays, shape (N,)
        What rows are compared by. Columns with two values, such as conditions, are cut first.
    same : sequence of arrays, shape (N,)
        What the rows of a group have in common.
    size : int
        Largest size of a group.

    Examples
    --------
    >>> groups_of_like_rows([np.array([0.0, 9.0, 1.0, 8.0])], size=2)
    [array([0, 2]), array([3, 1])]
    """
    table = np.nan_to_num(np.column_stack(columns), posinf=_FAR, neginf=-_FAR)
    spread = table.std(axis=0)
    table = table / np.where(spread > 0.0, spread, 1.0)
    pending, groups = _with_the_same(same, len(table)), []
    for binary in table.T:
        if np.unique(binary[:1000]).size == 2:
            pending = [part for rows in pending for part in _by_value(rows, binary[rows])]
    while pending:
        rows = pending.pop()
        if rows.size <= size:
            groups.append(rows)
            continue
        part = table[rows]
        widest = int(np.argmax(part.max(axis=0) - part.min(axis=0)))
        middle = rows.size // 2
        halves = np.argpartition(part[:, widest], middle)
        pending += [rows[halves[middle:]], rows[halves[:middle]]]
    return groups


def _with_the_same(columns: Sequence[NDArray], n_rows: int) -> list[NDArray[np.intp]]:
    if not columns:
        return [np.arange(n_rows)]
    kind = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(kind, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(kind[order])) + 1)


def _by_value(rows: NDArray[np.intp], values: NDArray) -> list[NDArray[np.intp]]:
    middle = (values.min() + values.max()) / 2.0
    return [part for part in (rows[values <= middle], rows[values > middle]) if part.size]
