"""The mode of a log-density: first of cheap versions of it, then of the full one."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

__all__ = ["KinkError", "LogDensity", "NoModeError", "approach_mode", "trust_region"]

_CLOSE_ENOUGH = 0.02
"""Distance from the mode, in posterior standard deviations, at which the search ends."""

_MOST_PASSES = 25

_BISECTIONS = 15
_JUMP = 0.1
"""Share of the fall of a slope along a step that the last bisection leaves: a smooth one would have
fallen by 0.003 % of it there."""


class NoModeError(ValueError):
    """No point was found at which the log-density is concave and its gradient vanishes."""


class KinkError(NoModeError):
    """The log-density has a kink near its mode, with any subset of the rows."""


class LogDensity(Protocol):
    """A log-density with its first two derivatives."""

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Value in nats, and gradient, shape (d,)."""
        ...

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian, shape (d, d)."""
        ...


def trust_region(start: NDArray[np.float64], density: LogDensity) -> NDArray[np.float64]:
    """Mode of a log-density that is cheap to evaluate, by Newton's method in trust regions.

    Raises
    ------
    NoModeError
        The search did not end at a finite point.
    """

    def negative(point: NDArray) -> tuple[float, NDArray[np.float64]]:
        value, gradient = density.gradient(point)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return np.inf, np.zeros_like(gradient)
        return -value, -gradient

    def hessian(point: NDArray) -> NDArray[np.float64]:
        return np.nan_to_num(-density.hessian(point))

    with np.errstate(all="ignore"):
        result = minimize(
            negative,
            start,
            jac=True,
            hess=hessian,
            method="trust-exact",
            options={"gtol": 1e-3, "maxiter": 200},
        )
    if not np.isfinite(result.x).all():
        raise NoModeError("the search for the mode left the real numbers")
    return np.asarray(result.x)


def approach_mode(
    start: NDArray[np.float64], cheap: LogDensity, full: LogDensity
) -> NDArray[np.float64]:
    """Mode of a log-density from nearby, with few passes over all rows.

    Steps of the full gradient, preconditioned with the Hessian of a cheap version, approach the
    mode; each reduces the distance by about the relative error of that Hessian. If a step does
    not, the full Hessian is used instead.

    Parameters
    ----------
    start : float array, shape (d,)
        The mode of the cheap version.
    cheap : LogDensity
        On some of the rows.
    full : LogDensity
        The log-density whose mode is returned.

    Returns
    -------
    float array, shape (d,)

    Raises
    ------
    NoModeError
        The search failed.
    """
    point = start
    factor = _factor(cheap.hessian(point))
    value, gradient = full.gradient(point)
    distance = np.inf
    for _ in range(_MOST_PASSES):
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise NoModeError("the log-density near the mode is not finite")
        step = cho_solve(factor, gradient)
        before, distance = distance, float(np.sqrt(max(gradient.dot(step), 0.0)))
        if distance < _CLOSE_ENOUGH:
            return point
        if distance > 0.5 * before:  # the cheap Hessian is too far off
            factor = _factor(full.hessian(point))
            step = cho_solve(factor, gradient)
        try:
            point, value, gradient = _ascend(full, point, step, value)
        except NoModeError:
            break
    if _has_kink(full, point, cho_solve(factor, gradient)):
        raise KinkError("the log-density has a kink near its mode, as of a Laplace distribution")
    raise NoModeError("the search for the mode did not converge")


def _factor(hessian: NDArray[np.float64]) -> tuple:
    try:
        return cho_factor(-hessian)
    except (LinAlgError, ValueError) as error:
        raise NoModeError("the Hessian near the mode is not negative definite") from error


def _ascend(
    density: LogDensity, point: NDArray, step: NDArray, value: float
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Go along the step, halved until the log-density does not fall."""
    for _ in range(20):
        new = point + step
        new_value, gradient = density.gradient(new)
        if np.isfinite(new_value) and new_value >= value - 1e-9 * abs(value):
            return new, new_value, gradient
        step = step / 2
    raise NoModeError("the log-density does not rise along its gradient")


def _has_kink(density: LogDensity, point: NDArray, step: NDArray) -> bool:
    """Whether the slope along a step jumps from rising to falling."""
    rising, falling = 0.0, 1.0
    slopes = [density.gradient(point + share * step)[1].dot(step) for share in (rising, falling)]
    if not slopes[0] > 0.0 > slopes[1]:
        return False
    jump = slopes[0] - slopes[1]
    for _ in range(_BISECTIONS):
        middle = (rising + falling) / 2.0
        slope = density.gradient(point + middle * step)[1].dot(step)
        if slope > 0.0:
            rising, slopes[0] = middle, slope
        else:
            falling, slopes[1] = middle, slope
    return slopes[0] - slopes[1] > _JUMP * jump
