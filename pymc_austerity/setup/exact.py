"""The plan of exact decisions: bounds of the rows about the anchor, and rows stored by them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.stored_rows import RowBoundError
from pymc_austerity.design.wording import in_round_numbers
from pymc_austerity.exact import (
    Groups,
    Inflation,
    any_direction,
    expected_rows,
    group_rows,
    nearest_directions,
    rows_of_pairs,
)
from pymc_austerity.model import RowStructure, design_function
from pymc_austerity.model.bounds import (
    NoBoundError,
    are_cheap,
    third_derivative_constants,
)
from pymc_austerity.rows import ArrayRows, ReorderedRows, SharedRows
from pymc_austerity.setup.checked_bounds import NotExactError, checked
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.whitened import WhitenedRows, whitened_rows

__all__ = [
    "DIRECTIONS",
    "FEW_ROWS",
    "MOST_ROWS",
    "ROWS_OF_A_GROUP",
    "Pair",
    "cheap_exact_sampling",
    "exact_sampling",
    "inflated",
    "normal_pairs",
    "radii_for",
    "refuse_slow_bounds",
    "stored",
    "structure_of",
]

Pair: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
_Sampling = TypeVar("_Sampling", bound=PoissonSampling)

_PAIRS = 16
_TRIALS = 150
DIRECTIONS = (8, 32, 128)
FEW_ROWS = 50.0
"""Expected rows of a decision below which a search for directions of the data does not pay."""

ROWS_OF_A_GROUP = 0.05
"""Rows that are evaluated in the time that a group takes at every decision."""

_SOME_ROWS = 5_000
MOST_ROWS = 500.0
"""Expected rows of a decision above which a sequential test is cheaper."""
_MOST_BY_DIRECTIONS = 4.0
"""Multiple of `MOST_ROWS` above which even directions do not help."""
_WORTH_WHILE = 2.0
"""Factor by which directions must reduce the expected rows to be used by default."""


def exact_sampling(
    problem: Problem, residuals: Residuals, anchor: Anchor, *, by_directions: bool = True
) -> PoissonSampling:
    """Bound the rows about the anchor, and group them by their bounds; they are not stored yet.

    Parameters
    ----------
    problem : Problem
        What to sample.
    residuals : Residuals
        Row differences minus their expansion of second order about the anchor.
    anchor : Anchor
    by_directions : bool
        Whether to look for directions of the data that save rows.

    Raises
    ------
    NotExactError
        The message says why exact decisions are not possible.
    """
    structure = structure_of(problem, residuals)
    bounded = _bounded(problem, structure, anchor, problem.likelihood.arrays)
    order, groups, pairs = bounded.grouped(problem.prepared.rng, by_directions=by_directions)
    rows = ArrayRows(residuals.arrays)
    inverse_root = np.ascontiguousarray(anchor.inverse_root)
    sampling = PoissonSampling(
        residuals.function,
        ReorderedRows(rows, order),
        ArrayRows([order]),
        anchor.point,
        inverse_root,
        groups,
    )
    owners = np.repeat(np.arange(groups.n_groups), np.diff(groups.starts))
    return inflated(checked(sampling, anchor, problem, owners), anchor, problem, pairs)


def cheap_exact_sampling(problem: Problem, residuals: Residuals, anchor: Anchor) -> PoissonSampling:
    """Like `exact_sampling`, but only if neither bounds nor decisions cost much.

    Raises
    ------
    NotExactError
        The message says why exact decisions are not possible, or what they would cost.
    """
    structure, arrays = structure_of(problem, residuals), problem.likelihood.arrays
    refuse_slow_bounds(problem, arrays, problem.likelihood.n_rows)
    n_rows, rng = problem.likelihood.n_rows, problem.prepared.rng
    if n_rows <= _SOME_ROWS:
        return exact_sampling(problem, residuals, anchor)
    chosen = np.sort(rng.choice(n_rows, _SOME_ROWS, replace=False))
    some = _bounded(problem, structure, anchor, [array[chosen] for array in arrays])
    plain = n_rows / _SOME_ROWS * some.cost(rng, by_directions=False)
    cost = plain
    if some.rows.is_single and plain < _MOST_BY_DIRECTIONS * MOST_ROWS:
        cost = min(plain, n_rows / _SOME_ROWS * some.cost(rng, by_directions=True))
    if cost > MOST_ROWS:
        raise NotExactError(f"they would read about {in_round_numbers(cost)} rows")
    return exact_sampling(problem, residuals, anchor, by_directions=plain > _WORTH_WHILE * cost)


def refuse_slow_bounds(problem: Problem, arrays: Sequence[NDArray], n_rows: int) -> None:
    """Raise NotExactError if computing the bounds of `n_rows` rows like these takes long."""
    if not are_cheap(problem.scalar_function, arrays, n_rows):
        raise NotExactError("their bounds take long to compute (test='exact' computes them)")


def stored(sampling: PoissonSampling, residuals: Residuals) -> PoissonSampling:
    """The same sampling with its rows stored for all processes."""
    (order,) = sampling.numbers.window(0, sampling.groups.n_rows)
    return replace(
        sampling,
        source=SharedRows(residuals.arrays, order),
        numbers=SharedRows([order], np.arange(order.size)),
    )


# ------------------------------------------------------------------ bounds


def structure_of(problem: Problem, residuals: Residuals) -> RowStructure:
    """The linear predictors of the rows, or the reason why there are no exact decisions."""
    structure = problem.structure
    if isinstance(structure, str):
        raise NotExactError(f"the rows have no linear predictors: {structure}")
    if not residuals.is_double:
        raise NotExactError("the rows are evaluated in single precision")
    return structure


def radii_for(size: int) -> NDArray[np.float64]:
    """A few radii about the anchor: for a few directions, most draws, nearly all, and beyond.

    Whitened draws of the posterior lie at a distance of about the square root of the dimension.
    """
    usual = math.sqrt(size)
    return np.unique([min(3.0, usual + 1.0), usual + 1.0, usual + 3.0, 3.0 * (usual + 3.0)])


def _bounded(
    problem: Problem, structure: RowStructure, anchor: Anchor, arrays: list[NDArray]
) -> "_BoundedRows":
    rows = whitened_rows(design_function(structure, problem.model), arrays, anchor)
    radii = radii_for(anchor.point.size)
    try:
        constants = third_derivative_constants(
            problem.scalar_function, arrays, rows.center, rows.gram, radii.tolist()
        )
    except NoBoundError as error:
        raise NotExactError(f"the rows have {error}") from None
    return _BoundedRows(rows, radii, constants, anchor.point.size)


# ------------------------------------------------------------------ groups


@dataclass(frozen=True, eq=False)
class _BoundedRows:
    """Rows and their bounds.

    Attributes
    ----------
    rows : WhitenedRows
    radii : float array, shape (R,)
    constants : float array, shape (R, N)
    size : int
        Dimension of the posterior.
    """

    rows: WhitenedRows
    radii: NDArray[np.float64]
    constants: NDArray[np.float64]
    size: int

    def cost(self, rng: np.random.Generator, *, by_directions: bool) -> float:
        """Rows that decisions are expected to read."""
        _, groups = self._by(DIRECTIONS[1], rng) if by_directions else self._plain()
        return expected_rows(groups, normal_pairs(self.size, rng))

    def grouped(
        self, rng: np.random.Generator, *, by_directions: bool = True
    ) -> tuple[NDArray[np.intp], Groups, list[Pair]]:
        """Groups by constants, and by directions too where the rows saved outweigh more groups."""
        pairs, best = normal_pairs(self.size, rng), self._plain()
        least = _cost(best[1], pairs)
        if by_directions and self.rows.is_single and least > FEW_ROWS:
            for n in DIRECTIONS:
                found = self._by(n, rng)
                cost = _cost(found[1], pairs)
                if cost > least:
                    break
                best, least = found, cost
        return *best, pairs

    def _by(self, n_directions: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], Groups]:
        usual = self.constants[len(self.radii) // 2]
        weights = np.where(np.isfinite(usual), usual, 0.0)
        directions = nearest_directions(self.rows.gradients(), weights, n_directions, rng)
        return group_rows(self.constants, self.radii, directions)

    def _plain(self) -> tuple[NDArray[np.intp], Groups]:
        n_rows = self.constants.shape[1]
        directions = any_direction(n_rows, self.size) if self.rows.is_single else None
        return group_rows(self.constants, self.radii, directions)


def _cost(groups: Groups, pairs: Sequence[Pair]) -> float:
    return expected_rows(groups, pairs) + ROWS_OF_A_GROUP * groups.n_groups


def inflated(
    sampling: _Sampling, anchor: Anchor, problem: Problem, pairs: Sequence[Pair]
) -> _Sampling:
    """The same sampling with the inflation of a short run, and the rows that decisions then read.

    The run makes independent proposals, as if the priors were normal.

    Raises
    ------
    NotExactError
        A row changed by more than its bound.
    """
    known, rng = Inflation.begin(sampling.inflation), problem.prepared.rng
    current = anchor.point.astype(problem.start.dtype)
    try:
        for _ in range(_TRIALS):
            proposed = anchor.draw(rng).astype(current.dtype)
            made = sampling.decide(proposed, current, 0.0, known.value, rng)
            known = known.after(made.ratios, made.n_rows_used, made.log_ratio)
            current = proposed if made.accept else current
    except RowBoundError as error:
        raise NotExactError(str(error)) from None
    rows = rows_of_pairs(sampling.groups, pairs, inflation=known.value)
    mean, median = float(rows.mean()), float(np.median(rows))
    return replace(sampling, inflation=known.value, expected_rows=mean, typical_rows=median)


def normal_pairs(size: int, rng: np.random.Generator) -> list[Pair]:
    """Pairs of independent draws of the normal approximation, whitened."""
    return [(rng.standard_normal(size), rng.standard_normal(size)) for _ in range(_PAIRS)]
