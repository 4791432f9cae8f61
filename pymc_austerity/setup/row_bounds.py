"""Bounds of rows about the anchor, from their whitened predictors, and groups of similar bounds."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.exact import (
    Directions,
    Grid,
    Groups,
    expected_rows,
    group_rows,
    nearest_directions,
)
from pymc_austerity.model import DesignFunction
from pymc_austerity.model.bounds import (
    CellBounds,
    NoBoundError,
    ScalarFunction,
    third_derivative_constants,
)
from pymc_austerity.rows import ArrayRows, blocks_of
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.target import About
from pymc_austerity.time_limit import counted, share_of_rest, within

Pair: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]

_PAIRS = 16
_DIRECTIONS = (8, 32, 128)
_FEW_ROWS = 50.0
"""Expected rows of a decision below which a search for directions of the data does not pay."""

_ROWS_OF_A_GROUP = 0.05
"""Rows that are evaluated in the time that a group takes at every decision."""

BOUNDS_SHARE = 0.5
"""Share of the time for set-up that bounds get."""
_LEAST_SECONDS, _TIMES = 5.0, 3.0
"""Bounds that take longer, also times as long as all before them, are given up where a sequential
test is ready without them."""


class NotExactError(ValueError):
    """Exact decisions are not possible, or not cheap; the message is a clause."""


@contextmanager
def time_for_bounds(problem: Problem) -> Iterator[None]:
    """Give up bounds that take long beside the rest of a set-up, which a sequential test needs too.

    A pass over sources takes most of its time to read them, and stores the rows by the way.

    Raises
    ------
    SetupTooLongError
        They do.
    """
    most = max(_LEAST_SECONDS, _TIMES * (counted() - problem.began))
    if problem.prepared.from_sources is not None:
        most = math.inf
    with share_of_rest(BOUNDS_SHARE), within(most):
        yield


class WhitenedRows(NamedTuple):
    r"""Predictors :math:`\eta_i^* + Z_i u` of the rows, with :math:`\theta = \theta^* + R u`.

    Attributes
    ----------
    center : float array, shape (N, k)
        Predictors at the anchor.
    gram : float array, shape (N, k, k)
        :math:`Z_i Z_i'`.
    gradients : callable
        Returns the :math:`Z_i` of rows with one predictor, float array, shape (N, d).
    """

    center: NDArray[np.float64]
    gram: NDArray[np.float64]
    gradients: Callable[[], NDArray[np.float64]]

    @property
    def is_single(self) -> bool:
        """Whether rows have one predictor."""
        return self.center.shape[1] == 1


def whitened_rows(
    designs: DesignFunction, arrays: Sequence[NDArray], anchor: Anchor
) -> WhitenedRows:
    """Evaluate the predictors of all rows, block by block.

    Parameters
    ----------
    designs : callable
        Evaluates the predictors; see `pymc_austerity.model.design_function`.
    arrays : sequence of arrays, each of shape (N, ...)
        Data of the rows.
    anchor : Anchor
    """
    source = ArrayRows(arrays)
    blocks = [whitened_block(designs, block, anchor)[:2] for block in blocks_of(source)]
    center, gram = (np.concatenate(parts) for parts in zip(*blocks, strict=True))

    def gradients() -> NDArray[np.float64]:
        each = (designs(block)[0] for block in blocks_of(source))
        return np.concatenate([design.product(anchor.root) for design in each])

    return WhitenedRows(center, gram, gradients)


def whitened_block(
    designs: DesignFunction, block: Sequence[NDArray], anchor: Anchor
) -> WhitenedRows:
    """The same for a block of rows, small enough that their gradients can be kept."""
    on_rows = designs(block)
    center = np.stack([design.eta(anchor.point) for design in on_rows], axis=1)
    each = [design.product(anchor.root) for design in on_rows]
    if len(each) == 1:
        (only,) = each
        return WhitenedRows(center, np.einsum("ij,ij->i", only, only)[:, None, None], lambda: only)
    z = np.stack(each, axis=1)
    return WhitenedRows(center, np.matmul(z, z.transpose(0, 2, 1)), lambda: each[0])


@dataclass(frozen=True, eq=False)
class BoundsOfRows:
    """Bounds of any rows about an anchor.

    Attributes
    ----------
    about : About
        Their expansion.
    designs : callable
        Evaluates the predictors.
    function : ScalarFunction
        Of the predictors.
    cells : CellBounds or None
        For rows that come in several blocks: filled as these need them.
    """

    about: About
    designs: DesignFunction
    function: ScalarFunction
    cells: CellBounds | None = None

    def with_cells(self, some: Sequence[NDArray]) -> "BoundsOfRows":
        """The same, which keeps what it bounds about the usual predictor of some rows."""
        if self.function.n_predictors != 1:
            return self
        usual = float(np.nanmedian(self.designs(some)[0].eta(self.about.anchor.point)))
        return replace(self, cells=CellBounds(self.function, usual))

    @cached_property
    def radii(self) -> NDArray[np.float64]:
        """A few about the anchor: for a few directions, most draws, nearly all, and beyond.

        Whitened draws of the posterior lie at a distance of about the square root of the dimension.
        """
        usual = math.sqrt(self.about.anchor.point.size)
        return np.unique([min(3.0, usual + 1.0), usual + 1.0, usual + 3.0, 3.0 * (usual + 3.0)])

    def pairs(self) -> list[Pair]:
        """Whitened points between which there are decisions."""
        center, root = self.about.anchor.point, self.about.anchor.inverse_root
        pairs = self.about.pilot_pairs(_PAIRS)
        return [(root @ (a - center), root @ (b - center)) for a, b in pairs]

    def of_all(self, arrays: Sequence[NDArray], n_rows: int | None = None) -> "BoundedRows":
        """Rows that are there, all of them or a sample of `n_rows`.

        Raises
        ------
        NotExactError
            Most of them have no bound.
        """
        rows = whitened_rows(self.designs, arrays, self.about.anchor)
        try:
            constants = self._constants(arrays, rows)
        except NoBoundError as error:
            raise NotExactError(f"the rows have {error}") from None
        each = (n_rows or len(rows.center)) / len(rows.center)
        return BoundedRows(self, rows, constants, each)

    def of_any(self, block: Sequence[NDArray]) -> tuple[NDArray[np.float64], WhitenedRows]:
        """Constants of the rows of a block, shape (R, m), and their whitened predictors.

        Constants are infinite if most of the rows have no bound.
        """
        rows = whitened_block(self.designs, block, self.about.anchor)
        try:
            return self._constants(block, rows), rows
        except NoBoundError:
            return np.full((self.radii.size, len(block[0])), np.inf), rows

    def _constants(self, block: Sequence[NDArray], rows: WhitenedRows) -> NDArray[np.float64]:
        known = (self.function, block, rows.center, rows.gram, self.radii.tolist())
        return third_derivative_constants(*known, cells=self.cells)


class _Grouped(NamedTuple):
    """Rows in groups, and how many of all rows decisions are expected to read."""

    grid: Grid
    directions: Directions | None
    labels: NDArray[np.int32]
    groups: Groups
    expected_rows: float

    @property
    def cost(self) -> float:
        """In rows."""
        return self.expected_rows + _ROWS_OF_A_GROUP * self.groups.n_groups


@dataclass(frozen=True, eq=False)
class BoundedRows:
    """Rows and their bounds.

    Attributes
    ----------
    bounds : BoundsOfRows
    rows : WhitenedRows
    constants : float array, shape (R, n)
    each : float
        Rows of the data that each of these represents.
    """

    bounds: BoundsOfRows
    rows: WhitenedRows
    constants: NDArray[np.float64]
    each: float

    @property
    def usual_constants(self) -> NDArray[np.float64]:
        """Constants for the ball that nearly all draws are in, float array, shape (n,)."""
        return self.constants[len(self.constants) // 2]

    def some(self, which: NDArray[np.intp]) -> "BoundedRows":
        """Some of the rows."""
        rows = self.rows
        own = WhitenedRows(rows.center[which], rows.gram[which], lambda: rows.gradients()[which])
        return replace(self, rows=own, constants=self.constants[:, which])

    def cost(self, rng: np.random.Generator, *, by_directions: bool) -> float:
        """Rows that decisions are expected to read."""
        found = self._directions(_DIRECTIONS[1], rng) if by_directions else None
        return self._grouped(found, self.bounds.pairs()).expected_rows

    def grouped(
        self, rng: np.random.Generator, *, by_directions: bool = True
    ) -> tuple[_Grouped, list[Pair]]:
        """Groups by constants, and by directions too where the rows saved outweigh more groups."""
        pairs = self.bounds.pairs()
        best = self._grouped(None, pairs)
        if by_directions and self.rows.is_single and best.cost > _FEW_ROWS:
            for n in _DIRECTIONS:
                found = self._grouped(self._directions(n, rng), pairs)
                if found.cost > best.cost:
                    break
                best = found
        return best, pairs

    def _directions(self, n_directions: int, rng: np.random.Generator) -> Directions:
        usual = self.usual_constants
        weights = np.where(np.isfinite(usual), usual, 0.0)
        return nearest_directions(self.rows.gradients(), weights, n_directions, rng)

    def _grouped(self, directions: Directions | None, pairs: Sequence[Pair]) -> _Grouped:
        vectors = np.eye(1, self.bounds.about.anchor.point.size) if self.rows.is_single else None
        if directions is not None:
            vectors = directions.vectors
        grid = Grid.of(
            self.constants, self.bounds.radii, vectors, by_direction=directions is not None
        )
        labels, groups = group_rows(self.constants, grid, directions)
        return _Grouped(grid, directions, labels, groups, self.each * expected_rows(groups, pairs))
