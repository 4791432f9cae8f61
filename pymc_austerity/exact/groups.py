"""Rows grouped by their constants and by the directions of their whitened data."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 8
_SAMPLE = 20_000
_CHUNK = 20_000
_ROUNDING = 1e-7
"""Rounding error of an arc cosine near one."""


@dataclass(frozen=True, eq=False)
class Directions:
    """A few directions, and the one that is nearest to each row.

    Attributes
    ----------
    vectors : float array, shape (C, d)
        Unit vectors.
    nearest : int array, shape (N,)
        The direction nearest to each row, up to its sign.
    angles : float array, shape (N,)
        Bound of the angle to it, at most a right angle, radians.
    """

    vectors: NDArray[np.float64]
    nearest: NDArray[np.int64]
    angles: NDArray[np.float64]


def nearest_directions(
    whitened: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_directions: int,
    rng: np.random.Generator,
) -> Directions:
    """Directions by spherical k-means, up to signs, on rows drawn in proportion to weights.

    Parameters
    ----------
    whitened : float array, shape (N, d)
        Gradients of the rows' predictors in whitened coordinates.
    weights : float array, shape (N,)
        Weight of the direction of each row; not negative.
    n_directions : int
    rng : numpy.random.Generator

    Examples
    --------
    >>> rows = np.array([[2.0, 0.0], [-1.0, 0.01], [0.0, 3.0]])
    >>> found = nearest_directions(rows, np.ones(3), 2, np.random.default_rng(0))
    >>> bool(found.nearest[0] == found.nearest[1] != found.nearest[2])
    True
    """
    return directions_of(whitened, _clustered(whitened, weights, n_directions, rng))


def directions_of(whitened: NDArray[np.float64], vectors: NDArray[np.float64]) -> Directions:
    """The nearest of given directions to each row.

    Parameters
    ----------
    whitened : float array, shape (N, d)
        Gradients of the rows' predictors in whitened coordinates.
    vectors : float array, shape (C, d)
        Unit vectors.
    """
    nearest = np.empty(len(whitened), dtype=np.int64)
    angles = np.empty(len(whitened))
    for start in range(0, len(whitened), _CHUNK):
        rows = slice(start, start + _CHUNK)
        cosines = abs(_unit(whitened[rows]) @ vectors.T)
        nearest[rows] = np.argmax(cosines, axis=1)
        angles[rows] = np.arccos(np.clip(cosines.max(axis=1), 0.0, 1.0))
    return Directions(vectors, nearest, np.minimum(angles + _ROUNDING, np.pi / 2))


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)


def _clustered(
    whitened: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_directions: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    shares = (weights + 1e-3 * weights.mean() + np.finfo(float).tiny).astype(np.float64)
    sample = _unit(whitened[rng.choice(len(whitened), _SAMPLE, p=shares / shares.sum())])
    vectors = _far_apart(sample, n_directions, rng)
    for _ in range(_ROUNDS):
        cosines = sample @ vectors.T
        nearest = np.argmax(abs(cosines), axis=1)
        signs = np.sign(cosines[np.arange(_SAMPLE), nearest])
        sums = np.zeros_like(vectors)
        np.add.at(sums, nearest, signs[:, None] * sample)
        found = np.linalg.norm(sums, axis=1) > 0.0
        vectors = np.where(found[:, None], _unit(sums), vectors)
    return vectors


def _far_apart(
    sample: NDArray[np.float64], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Members of a sample, with probabilities that grow with the distance from earlier ones."""
    vectors = [sample[rng.integers(len(sample))]]
    squares = np.zeros(len(sample))
    for _ in range(n - 1):
        squares = np.maximum(squares, (sample @ vectors[-1]) ** 2)
        far = np.clip(1.0 - squares, 0.0, 1.0) + np.finfo(float).tiny
        vectors.append(sample[rng.choice(len(sample), p=far / far.sum())])
    return np.array(vectors)


ROUNDING = 1e-9
"""Nats beyond a bound that never count as a violation: rounding of rows of ordinary size."""

_LEVEL = 2.0
_SHELLS = 6
_ABOVE, _BELOW = 20, 64
"""Levels above the top of the grid and below; one more for what is infinite. The last one is for
constants of zero, too."""

_LEVELS = _ABOVE + _BELOW + 2


class GroupArrays(NamedTuple):
    """Arrays of `Groups`, those with two axes flattened; pointers in compiled code.

    Attributes
    ----------
    starts, radii, largest, directions, direction, cosines, sines : arrays
    n_groups, n_radii : int
        G and R.
    is_single : bool
    """

    starts: NDArray[np.int64]
    radii: NDArray[np.float64]
    largest: NDArray[np.float64]
    directions: NDArray[np.float64]
    direction: NDArray[np.int64]
    cosines: NDArray[np.float64]
    sines: NDArray[np.float64]
    n_groups: int
    n_radii: int
    is_single: bool


@dataclass(frozen=True, eq=False)
class Groups:
    r"""Rows stored group by group, with bounds for the rows of each. All arrays are contiguous.

    Attributes
    ----------
    starts : int array, shape (G + 1,)
        Where the rows of each group begin in storage.
    radii : float array, shape (R,)
        Radii of the balls on which the constants hold, ascending.
    largest : float array, shape (R, G)
        The largest constant of each group, a bound on the third derivatives of its rows; infinite
        for none.
    directions : float array, shape (C, d)
        Unit vectors in whitened coordinates; none where rows have several predictors.
    direction : int array, shape (G,)
        Direction of each group.
    cosines, sines : float array, shape (G,)
        Of the largest angle between a group's direction and the whitened data of a row in it; the
        angle is at most a right one.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    """

    starts: NDArray[np.int64]
    radii: NDArray[np.float64]
    largest: NDArray[np.float64]
    directions: NDArray[np.float64]
    direction: NDArray[np.int64]
    cosines: NDArray[np.float64]
    sines: NDArray[np.float64]
    rounding: float = ROUNDING

    @property
    def n_rows(self) -> int:
        """Rows in all groups."""
        return int(self.starts[-1])

    @property
    def is_single(self) -> bool:
        """Whether groups have directions, as those of rows with one predictor have."""
        return len(self.directions) > 0

    @property
    def n_groups(self) -> int:
        """Number of groups, G."""
        return self.direction.size

    @cached_property
    def arrays(self) -> GroupArrays:
        """The same for compiled code."""
        return GroupArrays(
            self.starts, self.radii, self.largest.ravel(), self.directions.ravel(), self.direction,
            self.cosines, self.sines, self.n_groups, self.radii.size, self.is_single,
        )  # fmt: skip


class RowsOfCells(NamedTuple):
    """Counts and bounds of some rows, cell by cell.

    Attributes
    ----------
    cells : int array, shape (K,)
        Cells that have some of the rows.
    counts : int array, shape (K,)
    largest : float array, shape (R, K)
        The largest constants.
    angles : float array, shape (K,)
        The largest angle.
    """

    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    largest: NDArray[np.float64]
    angles: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    r"""A grid of constants and directions, so that rows can be grouped block by block.

    Rows of a cell have constants within a factor of two of each other. With one predictor a row
    depends on :math:`z_i \cdot u` alone, and rows are grouped by the direction of :math:`z_i`
    too: then the largest :math:`|z_i \cdot u|` of a group is known without its rows, and is
    far below :math:`|z_i| |u|` for most.

    Attributes
    ----------
    radii : float array, shape (R,)
        Radii of the balls on which the constants hold, ascending.
    top : float
        A constant, of the largest in a sample.
    vectors : float array, shape (C, d), or None
        Unit vectors in whitened coordinates; None where rows have several predictors.
    by_direction : bool
        Whether rows are grouped by direction; otherwise the rows of a cell may have any.
    """

    radii: NDArray[np.float64]
    top: float
    vectors: NDArray[np.float64] | None
    by_direction: bool

    @classmethod
    def of(
        cls,
        constants: NDArray[np.float64],
        radii: NDArray[np.float64],
        vectors: NDArray[np.float64] | None = None,
        *,
        by_direction: bool = False,
    ) -> "Grid":
        """The grid for rows like those with some constants, shape (R, n)."""
        usual = constants[len(radii) // 2]
        finite = usual[np.isfinite(usual) & (usual > 0.0)]
        top = float(finite.max()) if finite.size else 1.0
        return cls(np.asarray(radii, dtype=np.float64), top, vectors, by_direction)

    @property
    def n_cells(self) -> int:
        """Number of cells, most of them empty."""
        if self.vectors is None or not self.by_direction:
            return _LEVELS
        return len(self.vectors) * (_SHELLS + 1) * _LEVELS

    @property
    def usual(self) -> int:
        """Number of the radius whose constants rows are grouped by."""
        return len(self.radii) // 2

    def directions(self, gradients: Callable[[], NDArray[np.float64]]) -> Directions | None:
        """The nearest directions of rows; None where rows of a cell may have any.

        Parameters
        ----------
        gradients : callable
            Returns the gradients of the rows' predictors, float array, shape (m, d).
        """
        if not self.by_direction or self.vectors is None:
            return None
        return directions_of(gradients(), self.vectors)

    def cells_of(
        self, usual: NDArray[np.float64], directions: Directions | None
    ) -> NDArray[np.int64]:
        """The cell of each row: direction, angle, level of its constant.

        Parameters
        ----------
        usual : float array, shape (m,)
            Constants for the usual radius.
        directions : Directions or None
            Of the rows, from `directions`.
        """
        with np.errstate(divide="ignore"):
            levels = np.floor(np.log(self.top / usual) / np.log(_LEVEL))
        levels = np.where(np.isfinite(usual), np.clip(levels, -_ABOVE, _BELOW), -_ABOVE - 1)
        cells = levels.astype(np.int64) + _ABOVE + 1
        if directions is None:
            return cells
        shells = (directions.angles / (np.pi / 2) * _SHELLS).astype(np.int64)
        of_direction = (directions.nearest * (_SHELLS + 1) + shells) * _LEVELS
        return np.add(cells, of_direction, out=cells)

    def rows_of_cells(
        self, constants: NDArray[np.float64], directions: Directions | None
    ) -> RowsOfCells:
        """What is known of the rows of a block, from their constants for all radii, shape (R, m).

        `directions` are those of `cells_of`.
        """
        cells = self.cells_of(constants[self.usual], directions)
        counts = np.bincount(cells, minlength=self.n_cells)
        present = np.flatnonzero(counts)
        largest = np.zeros((len(constants), self.n_cells))
        for total, values in zip(largest, constants, strict=True):
            np.maximum.at(total, cells, values)
        angles = np.full(self.n_cells, np.pi / 2)
        if directions is not None:
            angles = np.zeros(self.n_cells)
            np.maximum.at(angles, cells, directions.angles)
        return RowsOfCells(present, counts[present], largest[:, present], angles[present])


class GridTotals:
    """Counts and bounds of the rows of each cell, added up block by block.

    Parameters
    ----------
    grid : Grid

    Attributes
    ----------
    counts : int array, shape (K,)
        Rows of each cell.

    Examples
    --------
    >>> grid = Grid(np.array([3.0]), 9.0, None, by_direction=False)
    >>> totals = GridTotals(grid)
    >>> for constants in ([[1.0, 9.0]], [[1.1, np.inf]]):
    ...     totals.add(grid.rows_of_cells(np.array(constants), None))
    >>> groups = totals.groups()
    >>> groups.starts, groups.largest
    (array([0, 1, 2, 4]), array([[inf, 9. , 1.1]]))
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.counts = np.zeros(grid.n_cells, dtype=np.int64)
        self._largest = np.zeros((grid.radii.size, grid.n_cells))
        self._angles = np.zeros(grid.n_cells)

    def add(self, part: RowsOfCells) -> None:
        """Add rows."""
        self.counts[part.cells] += part.counts
        self._largest[:, part.cells] = np.maximum(self._largest[:, part.cells], part.largest)
        self._angles[part.cells] = np.maximum(self._angles[part.cells], part.angles)

    @cached_property
    def number(self) -> NDArray[np.int32]:
        """Number of the group of each cell; valid when all rows were added."""
        return np.cumsum(self.counts > 0, dtype=np.int32) - 1

    def groups(self) -> Groups:
        """The groups: cells with rows in them."""
        cells = np.flatnonzero(self.counts)
        starts = np.concatenate([[0], np.cumsum(self.counts[cells])]).astype(np.int64)
        direction = cells // ((_SHELLS + 1) * _LEVELS) if self.grid.by_direction else 0 * cells
        angles, vectors = self._angles[cells], self.grid.vectors
        return Groups(
            starts,
            self.grid.radii,
            np.ascontiguousarray(self._largest[:, cells]),
            np.empty((0, 0)) if vectors is None else vectors,
            direction,
            np.zeros(cells.size) if vectors is None else np.cos(angles),
            np.ones(cells.size) if vectors is None else np.sin(angles),
        )


def group_rows(
    constants: NDArray[np.float64], grid: Grid, directions: Directions | None = None
) -> tuple[NDArray[np.int32], Groups]:
    r"""The group of each row, for rows that are all there at once, and the groups.

    Parameters
    ----------
    constants : float array, shape (R, N)
        Bounds on the third derivatives of each row, for each radius.
    grid : Grid
    directions : Directions, optional
        Of the rows, where the grid has some.

    Returns
    -------
    labels : int array, shape (N,)
    groups : Groups

    Examples
    --------
    >>> constants = np.array([[1.0, 9.0, 1.1]])
    >>> labels, groups = group_rows(constants, Grid.of(constants, np.array([3.0])))
    >>> labels, groups.starts, groups.largest
    (array([1, 0, 1], dtype=int32), array([0, 1, 3]), array([[9. , 1.1]]))
    """
    totals = GridTotals(grid)
    totals.add(grid.rows_of_cells(constants, directions))
    return totals.number[grid.cells_of(constants[grid.usual], directions)], totals.groups()
