"""The curvature of a log-density whose rows have kinks, averaged over its own width."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates.search import (
    NoModeError,
    RowDensity,
    approach_mode,
    climb,
    inverse_root,
)

_CLOSE, _ON_SOME = 1.0, 2.0
"""Distance from the mode, in posterior standard deviations, that is near enough: beside it single
rows turn; and where some rows stand for many."""
_MOST_STEPS = 200
_ROUNDS = 3
"""Of averages, each over the approximation that the one before gives."""
_ENTRIES = 8
"""Entries along which kinks are looked for."""
_STEEPER = 3.0
"""Times the curvature at single points that the averaged one has where rows have kinks."""
_LEAST, _MOST, _TRIES = 0.5, 2.0, 20
"""Fall of a log-density over twice its width, nats, and searches for the width."""
_LONGEST = 4.0
_MOST_FALL = 10.0
"""Nats, over twice a standard deviation; one in a normal distribution."""


class AveragedCurvature:
    """A log-density whose rows have an averaged curvature.

    A row whose log-likelihood is linear but for a kink has no curvature at any point, but many of
    them have a smooth sum. The average is over the normal approximation that has this curvature.

    Parameters
    ----------
    density : RowDensity
    root : float array, shape (d, d), optional
        Root of a covariance that is tried first.
    """

    def __init__(self, density: RowDensity, root: NDArray[np.float64] | None = None) -> None:
        self._density, self.root = density, root

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-density in nats, and its gradient, shape (d,)."""
        return self._density.gradient(point)

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Averaged Hessian, shape (d, d)."""
        root = np.diag(widths(self._density, point)) if self.root is None else self.root
        for _ in range(_ROUNDS):
            found = self._density.averaged_hessian(point, root)
            root = inverse_root(-found)
        self.root = root
        return found


def widths(density: RowDensity, point: NDArray) -> NDArray[np.float64]:
    """Moves of each entry over which a log-density falls by half a nat, shape (d,)."""
    found = np.ones(point.size)
    value, _ = density.gradient(point)
    for k in range(point.size):
        for _ in range(_TRIES):
            move = np.zeros(point.size)
            move[k] = found[k]
            fall = _fall(density, point, move, value)
            if _LEAST < fall < _MOST:
                break
            ratio = 1.0 / np.sqrt(fall) if fall > 0.0 else _LONGEST  # NaN where it is not finite
            found[k] *= np.clip(np.nan_to_num(ratio, nan=0.0), 1.0 / _LONGEST, _LONGEST)
    return found


def _fall(density: RowDensity, point: NDArray, move: NDArray, value: float) -> float:
    """Sum of the falls of a log-density from a value along a move and back from it, nats."""
    return 2.0 * value - sum(density.gradient(point + m)[0] for m in (move, -move))


def falls_as_curved(density: RowDensity, point: NDArray) -> bool:
    """Whether a log-density falls about as its curvature at a mode says.

    Between two kinks it may have a mode and hardly any curvature.
    """
    try:
        root = inverse_root(-density.hessian(point))
    except NoModeError:
        return False
    value, _ = density.gradient(point)
    for move in root.T[:: -(-point.size // _ENTRIES)]:
        if not _fall(density, point, move, value) < _MOST_FALL:
            return False
    return True


def have_kinks(density: RowDensity, point: NDArray, rng: np.random.Generator) -> bool:
    """Whether rows are curved over the width of the log-density, and not at single points."""
    own = widths(density, point)
    for k in rng.permutation(point.size)[:_ENTRIES]:
        move = np.zeros(point.size)
        move[k] = own[k]
        ends = [density.row_gradient(point + m) for m in (-move, move)]
        averaged = (ends[0] - ends[1])[k] * own[k] / 2.0
        at = [-density.row_hessian(point + m)[k, k] * own[k] ** 2 for m in (-move, 0.0, move)]
        single = (at[0] + 4.0 * at[1] + at[2]) / 6.0
        if averaged > _STEEPER * max(single, 0.0) and averaged > _LEAST / 2.0:
            return True
    return False


def approximate_mode(start: NDArray, density: RowDensity) -> NDArray[np.float64]:
    """The end of a search that needs no curvature."""
    found = climb(start, start, np.eye(start.size), density, maxiter=_MOST_STEPS)
    return start + np.asarray(found.x)


def mode_beside_kinks(
    near: NDArray, some: RowDensity, density: RowDensity
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A point near the mode, and the root of the covariance of a normal approximation.

    Parameters
    ----------
    near : float array, shape (d,)
        Where the search starts.
    some, density : RowDensity
        On some of the rows, and on all.

    Raises
    ------
    NoModeError
        The search failed, or the log-density is not concave there.
    """
    cheap = AveragedCurvature(some)
    near = approach_mode(near, cheap, cheap, close=_ON_SOME)
    full = AveragedCurvature(density, inverse_root(-cheap.hessian(near)))
    point = approach_mode(near, cheap, full, close=_CLOSE)
    return point, inverse_root(-full.hessian(point))
