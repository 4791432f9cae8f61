"""The plan of exact decisions: bounds of the rows about the anchor, and rows stored by them."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.inflation import Inflation
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.exact import (
    Groups,
    any_direction,
    expected_rows,
    group_rows,
    nearest_directions,
)
from pymc_austerity.model import RowStructure
from pymc_austerity.model.bounds import (
    NoBoundError,
    scalar_function,
    third_derivative_constants,
)
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.whitened import WhitenedRows, whitened_rows

__all__ = ["NotExactError", "exact_sampling"]

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]

_PAIRS = 16
_TRIALS = 150
_DIRECTIONS = (8, 32, 128)
_FEW_ROWS = 50.0
"""Expected rows of a decision below which directions of the data are not worth looking for."""

_ROWS_OF_A_GROUP = 0.05
"""Rows that are evaluated in the time that a group takes at every decision."""


class NotExactError(ValueError):
    """Rows have no bounds, or are not evaluated exactly enough; the message is half a sentence."""


def exact_sampling(problem: Problem, residuals: Residuals, anchor: Anchor) -> PoissonSampling:
    """Bound the rows about the anchor, and store them in groups of like bounds.

    Parameters
    ----------
    problem : Problem
        What to sample.
    residuals : Residuals
        Row differences less their expansion of second order about the anchor.
    anchor : Anchor

    Raises
    ------
    NotExactError
        The message says why exact decisions are not possible.
    """
    structure = problem.structure
    if isinstance(structure, str):
        raise NotExactError(f"the rows have no linear predictors: {structure}")
    if not residuals.is_double:
        raise NotExactError("its rows are evaluated in single precision")
    rng, n_rows, size = problem.prepared.rng, problem.likelihood.n_rows, anchor.point.size
    rows = whitened_rows(structure, problem.model, problem.likelihood.arrays, anchor)
    radii = _radii(size)
    constants = _constants(problem, structure, rows, radii)
    pairs = [(rng.standard_normal(size), rng.standard_normal(size)) for _ in range(_PAIRS)]
    order, groups = _grouped(constants, radii, rows, pairs, rng)
    source = SharedRows(residuals.arrays, order)
    numbers = SharedRows([np.arange(n_rows)], order)
    inverse_root = np.ascontiguousarray(anchor.inverse_root)
    sampling = PoissonSampling(
        residuals.function, source, numbers, anchor.point, inverse_root, groups
    )
    inflation = _inflation(sampling, anchor, rng, problem.start.dtype)
    expected = expected_rows(groups, pairs, inflation=inflation)
    return PoissonSampling(
        residuals.function, source, numbers, anchor.point, inverse_root, groups, inflation, expected
    )


def _radii(size: int) -> NDArray[np.float64]:
    """A few radii about the anchor: of some directions, of most and nearly all draws, and beyond.

    Draws of the posterior are at a distance of about the square root of the dimension.
    """
    usual = math.sqrt(size)
    return np.unique([min(3.0, usual + 1.0), usual + 1.0, usual + 3.0, 3.0 * (usual + 3.0)])


def _constants(
    problem: Problem, structure: RowStructure, rows: WhitenedRows, radii: Sequence[float] | NDArray
) -> NDArray[np.float64]:
    placeholders = [leaf.placeholder for leaf in structure.leaves]
    function = scalar_function(structure.function, structure.etas, placeholders)
    try:
        return third_derivative_constants(
            function, problem.likelihood.arrays, rows.center, rows.gram, list(radii)
        )
    except NoBoundError as error:
        raise NotExactError(f"its rows have {error}") from None


def _grouped(
    constants: NDArray[np.float64],
    radii: NDArray[np.float64],
    rows: WhitenedRows,
    pairs: Sequence[Pair],
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], Groups]:
    """Groups by constants; by directions as well where these save more rows than groups cost."""
    n_rows = constants.shape[1]
    if not rows.is_single:
        return group_rows(constants, radii)
    best = group_rows(constants, radii, any_direction(n_rows, pairs[0][0].size))
    least = _cost(best[1], pairs)
    if least < _FEW_ROWS:
        return best
    whitened, usual = rows.gradients(), constants[len(radii) // 2]
    weights = np.where(np.isfinite(usual), usual, 0.0)
    for n in _DIRECTIONS:
        found = group_rows(constants, radii, nearest_directions(whitened, weights, n, rng))
        cost = _cost(found[1], pairs)
        if cost > least:
            break
        best, least = found, cost
    return best


def _cost(groups: Groups, pairs: Sequence[Pair]) -> float:
    return expected_rows(groups, pairs) + _ROWS_OF_A_GROUP * groups.n_groups


def _inflation(
    sampling: PoissonSampling, anchor: Anchor, rng: np.random.Generator, dtype: np.dtype
) -> float:
    """What independent draws of the normal approximation ask for."""
    known = Inflation.begin(sampling.inflation)
    size = anchor.point.size
    for _ in range(_TRIALS):
        one, other = (
            (anchor.point + anchor.root.dot(rng.standard_normal(size))).astype(dtype)
            for _ in range(2)
        )
        made = sampling.decide(one, other, 0.0, known.value, rng)
        known = known.after(made.ratios, made.n_rows_used, 0.0)
    return known.value
