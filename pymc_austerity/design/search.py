"""Search over batch sizes and boundaries for the cheapest test that errs no more than allowed."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from pymc_austerity.design.acceptance import AcceptanceQuadrature, distance_grid
from pymc_austerity.design.boundaries import Boundary
from pymc_austerity.design.error import operating_characteristic
from pymc_austerity.design.looks import Looks
from pymc_austerity.design.promise import TestDesign
from pymc_austerity.errors import SettingError

__all__ = [
    "ALPHAS",
    "Question",
    "cheapest",
    "check_settings",
    "common_grid",
    "default_batch_sizes",
    "mean_weights",
    "sizes_to_try",
]

Floats = NDArray[np.float64]

ALPHAS = (0.0, 0.2, 0.35, 0.5)
"""Shapes of the boundary to try."""

_FARTHEST = 6.0
"""Largest boundary to try, in standard errors."""

_MOST_LOOKS = 100
_FEW_LOOKS = 20
_FEWEST_ROWS = 100
_TINY = 1e-12


class Question(NamedTuple):
    """Purpose of a design: distances of decisions, and how error and usage are averaged."""

    n_rows: int
    looks: Callable[[int, int], Looks]
    distances: Floats
    of_decisions: Floats
    quadrature: AcceptanceQuadrature | None

    def design(self, batch_size: int, boundary: Boundary) -> TestDesign:
        """Expected error and cost of a test."""
        looks = self.looks(batch_size, self.n_rows)
        error, usage = operating_characteristic(self.distances, looks, boundary)
        off = math.nan
        if self.quadrature is not None:
            off = float(np.abs(self.quadrature.error(error)).mean())
        return TestDesign(
            batch_size=batch_size,
            epsilon=boundary.epsilon,
            alpha=boundary.alpha,
            expected_error=float(self.of_decisions @ error),
            worst_error=float(error[0]),
            expected_data_fraction=float(self.of_decisions @ usage),
            expected_acceptance_error=off,
        )


def default_batch_sizes(n_rows: int, looks: Callable[[int, int], Looks]) -> list[int]:
    """Batch sizes up to half of the rows, in geometric steps, which are finer if looks are few.

    Parameters
    ----------
    n_rows : int
        Number of all rows.
    looks : callable
        Maps a batch size and the number of rows to the looks of a test.

    Returns
    -------
    list of int
        Increasing; none below 100 rows, whose means are rarely normal, and none that leads to more
        than 100 looks. All rows if there are fewer than 200.

    Examples
    --------
    >>> from pymc_austerity.design import constant_looks, default_batch_sizes
    >>> default_batch_sizes(2_000, constant_looks)
    [125, 157, 198, 250, 315, 397, 500, 630, 794, 1000]
    """
    sizes: list[int] = []
    size = float(n_rows // 2)
    while size >= _FEWEST_ROWS and (n_looks := len(looks(round(size), n_rows))) <= _MOST_LOOKS:
        sizes.append(round(size))
        size /= 2.0 if n_looks > _FEW_LOOKS else 2.0 ** (1.0 / 3.0)
    return sizes[::-1] or [n_rows]


def sizes_to_try(
    given: Iterable[int] | None, n_rows: int, looks: Callable[[int, int], Looks]
) -> list[int]:
    """Batch sizes as given, or the default ones; increasing."""
    return default_batch_sizes(n_rows, looks) if given is None else sorted(given)


def check_settings(max_error: float, sizes: Sequence[int], alphas: Sequence[float]) -> None:
    """Raise an error if there is nothing to search for."""
    if not 0.0 < max_error < 0.5:
        raise SettingError(f"max_error is {max_error}: it must lie above 0 and below 0.5")
    if not len(sizes) or not len(alphas):
        raise SettingError("batch_sizes and alphas must name at least one value each to try")


def common_grid(tests: Sequence[Looks], furthest: float) -> Floats:
    """Distances that suit all tests."""
    information = [looks.information for looks in tests if len(looks) > 1]
    if not information:
        return distance_grid(1.0, 1.0, furthest)
    return distance_grid(
        float(min(each[0] for each in information)),
        float(max(each[-1] for each in information)),
        furthest,
    )


def mean_weights(mu_std: Floats, grid: Floats) -> Floats:
    """Weights of the mean over given distances, where values are linear between the nodes."""
    cell = np.clip(np.searchsorted(grid, mu_std, side="right") - 1, 0, grid.size - 2)
    part = (mu_std - grid[cell]) / np.diff(grid)[cell]
    weights = np.bincount(cell, 1.0 - part, grid.size) + np.bincount(cell + 1, part, grid.size)
    return np.asarray(weights / mu_std.size)


def cheapest(
    question: Question,
    risk: Callable[[int, Boundary], float],
    max_error: float,
    sizes: Sequence[int],
    alphas: Sequence[float],
    loosest: float = 0.5,
) -> TestDesign:
    """Try all batch sizes and shapes, each with the largest allowed epsilon."""
    best = question.design(sizes[0], Boundary(0.0, alphas[0]))
    for size in sizes:
        for alpha in alphas:
            if size >= best.expected_data_fraction * question.n_rows:
                continue  # its first look alone costs as much
            epsilon = min(_largest_epsilon(partial(risk, size), max_error, alpha), loosest)
            design = question.design(size, Boundary(epsilon, alpha))
            if design.expected_data_fraction < best.expected_data_fraction:
                best = design
    return best


def _largest_epsilon(risk: Callable[[Boundary], float], max_error: float, alpha: float) -> float:
    """Largest epsilon, to three digits, whose risk is not above `max_error`."""

    def excess(bound: float) -> float:
        """Positive where the risk is too large; on a log scale, on which it is nearly linear."""
        return math.log((risk(Boundary(float(ndtr(-bound)), alpha)) + _TINY) / max_error)

    if excess(0.0) <= 0.0:
        return 0.5
    if excess(_FARTHEST) > 0.0:
        return 0.0
    bound = brentq(excess, 0.0, _FARTHEST, xtol=1e-3)
    while excess(bound) > 0.0:
        bound += 1e-3
    return _rounded_down(float(ndtr(-bound)))


def _rounded_down(value: float) -> float:
    """Value rounded down to three significant digits."""
    digits = 2 - math.floor(math.log10(value))
    return float(f"{math.floor(value * 10.0**digits) / 10.0**digits:.3g}")
