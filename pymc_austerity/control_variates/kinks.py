"""The curvature of a log-density whose rows have kinks, averaged over its own width."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from pymc_austerity.control_variates.search import (
    NoModeError,
    RowDensity,
    approach_mode,
    inverse_root,
)

_CLOSE = 0.3
"""Distance from the mode, in posterior standard deviations, that is near enough: beside it single
rows turn."""
_MOST_STEPS = 200
_ENTRIES = 8
"""Entries along which kinks are looked for."""
_STEEPER = 3.0
"""Times the curvature at single points that the averaged one has where rows have kinks."""
_LEAST, _MOST, _TRIES = 0.5, 2.0, 20
"""Fall of a log-density over twice its width, nats, and searches for the width."""
_LONGEST = 4.0


class AveragedCurvature:
    r"""A log-density with secants of its gradient in the place of its Hessian.

    .. math:: H_{jk} = \frac{\nabla_j f(\theta + w_k e_k) - \nabla_j f(\theta - w_k e_k)}{2 w_k}

    with widths :math:`w_k` over which the log-density falls by about half a nat, then in the
    coordinates in which this is minus the identity matrix. A row whose log-likelihood is linear but
    for a kink has no curvature at any point, but many of them have a smooth sum.

    Parameters
    ----------
    density : RowDensity
    """

    def __init__(self, density: RowDensity) -> None:
        self._density = density
        self._widths: NDArray[np.float64] | None = None

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-density in nats, and its gradient, shape (d,)."""
        return self._density.gradient(point)

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Averaged Hessian, shape (d, d)."""
        self._widths = widths(self._density, point, self._widths)
        along = np.diag(self._widths)
        for _ in range(2):  # along the entries, then along the axes of what was found
            inverse = np.linalg.inv(along)
            found = inverse.T @ self._secants(point, along) @ inverse
            try:
                along = inverse_root(-found)
            except NoModeError:
                break
        return found

    def _secants(self, point: NDArray, along: NDArray[np.float64]) -> NDArray[np.float64]:
        """Products of the averaged Hessian with these columns from both sides."""
        found = np.empty_like(along)
        for k, move in enumerate(along.T):
            (_, above), (_, below) = (self._density.gradient(point + m) for m in (move, -move))
            found[:, k] = along.T @ (above - below) / 2.0
        return (found + found.T) / 2.0


def widths(
    density: RowDensity, point: NDArray, first: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Moves of each entry over which a log-density falls by half a nat, shape (d,).

    Parameters
    ----------
    density : RowDensity
    point : float array, shape (d,)
    first : float array, shape (d,), optional
        What is tried first.
    """
    found = np.ones(point.size) if first is None else first.copy()
    value, _ = density.gradient(point)
    for k in range(point.size):
        for _ in range(_TRIES):
            move = np.zeros(point.size)
            move[k] = found[k]
            fall = 2.0 * value - sum(density.gradient(point + m)[0] for m in (move, -move))
            if _LEAST < fall < _MOST:
                break
            ratio = 1.0 / np.sqrt(fall) if fall > 0.0 else _LONGEST  # NaN where it is not finite
            found[k] *= np.clip(np.nan_to_num(ratio, nan=0.0), 1.0 / _LONGEST, _LONGEST)
    return found


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

    def negative(point: NDArray) -> tuple[float, NDArray[np.float64]]:
        value, gradient = density.gradient(point)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.inf, np.zeros_like(gradient)
        return -value, -gradient

    with np.errstate(all="ignore"):
        options = {"maxiter": _MOST_STEPS}
        found = minimize(negative, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x)


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
    cheap, full = AveragedCurvature(some), AveragedCurvature(density)
    near = approach_mode(near, cheap, cheap, close=_CLOSE)
    point = approach_mode(near, cheap, full, close=_CLOSE)
    return point, inverse_root(-cheap.hessian(point))
