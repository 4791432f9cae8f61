r"""Trajectories in coordinates that straighten the funnels of hierarchies, interpreted or compiled.

Some entries :math:`\theta_i` have a prior that is normal given the others, :math:`\psi`, such as
the levels of a hierarchy given their mean and scale. They are measured from a conditional mean, in
conditional standard deviations:

.. math::
    \theta_i = m_i(\psi) + P_i(\psi)^{-1/2} z_i, \quad
    P_i = \max(-H_{ii}, 0) + c_i, \quad
    m_i = \theta_i^* + s_i / P_i

with the slope :math:`s_i` and the curvature :math:`c_i` (with a minus sign) of the exact part at
:math:`(\psi, \theta^*)`. This is centered where the rows say much about an entry, and non-centered
where the prior does, after Papaspiliopoulos, Roberts and Skold (2003), Non-centered
parameterisations for hierarchical models. The density of the coordinates has the factor
:math:`\prod_i P_i^{-1/2}`.

The exact part is quadratic in these entries, and its cross derivatives between them vanish. Its
gradient at a few points therefore gives all second and third derivatives that are needed, without
error: differences of a quadratic function are exact. These are plain functions, which numba can
compile.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

__all__ = ["Exact", "center_and_scale", "evaluate", "leapfrog", "log_density", "walk"]

Exact = Callable[[NDArray], Sequence[Any]]
"""Maps a point to the exact part there, nats, and its gradient, shape (d,)."""

_MOST_STEPS = 500
"""Maximum number of leapfrog steps in a trajectory."""


def evaluate(exact: Exact, point: NDArray) -> tuple[float, NDArray]:
    """The exact part and its gradient; in compiled code, of a function that has an address."""
    value, gradient = exact(point)
    return float(value), gradient


@register_jitable
def center_and_scale(
    exact: Exact, x: NDArray, anchor: NDArray, hessian: NDArray, scaled: NDArray
) -> tuple[NDArray, NDArray]:
    r"""Conditional mean and standard deviation of the scaled entries.

    Parameters
    ----------
    exact : callable
        The exact part.
    x : float array, shape (d,)
        A point, or coordinates; the values of scaled entries do not matter.
    anchor, hessian : float arrays, shapes (d,) and (d, d)
        :math:`\theta^*` and :math:`H`.
    scaled : int array, shape (k,)
        Entries with coordinates of their own.

    Returns
    -------
    center, scale : float arrays, shape (k,)
        :math:`m` and :math:`P^{-1/2}`, which is NaN where the conditional prior is not normal.
    """
    slope, curvature = _derivatives(exact, x, anchor, scaled)
    precision = _of_rows(hessian, scaled) - curvature
    return anchor[scaled] + slope / precision, precision**-0.5


@register_jitable
def _of_rows(hessian: NDArray, scaled: NDArray) -> NDArray:
    return np.maximum(-np.diag(hessian)[scaled], 0.0)


@register_jitable
def _displaced(x: NDArray, anchor: NDArray, scaled: NDArray, by: NDArray) -> NDArray:
    """The point with its scaled entries displaced from the anchor."""
    there = x.copy()
    there[scaled] = anchor[scaled] + by
    return there


@register_jitable
def _derivatives(
    exact: Exact, x: NDArray, anchor: NDArray, scaled: NDArray
) -> tuple[NDArray, NDArray]:
    """First and second derivatives with respect to each scaled entry, at the anchor."""
    one = np.ones(scaled.size)
    ahead = evaluate(exact, _displaced(x, anchor, scaled, one))[1][scaled]
    behind = evaluate(exact, _displaced(x, anchor, scaled, -one))[1][scaled]
    return 0.5 * (ahead + behind), 0.5 * (ahead - behind)


@register_jitable
def _of_surrogate(
    exact: Exact, point: NDArray, anchor: NDArray, gradient: NDArray, hessian: NDArray
) -> tuple[float, NDArray]:
    """Exact part and expansion of the rows."""
    value, slope = evaluate(exact, point)
    away = point - anchor
    curved = np.dot(hessian, away)
    return value + np.dot(gradient, away) + 0.5 * np.dot(away, curved), slope + gradient + curved


@register_jitable
def log_density(
    exact: Exact,
    x: NDArray,
    anchor: NDArray,
    gradient: NDArray,
    hessian: NDArray,
    scaled: NDArray,
) -> tuple[float, NDArray]:
    """The surrogate in its coordinates: log-density, nats, and gradient, shape (d,).

    Parameters
    ----------
    exact : callable
        The exact part.
    x : float array, shape (d,)
        Coordinates.
    anchor, gradient, hessian : float arrays, shapes (d,), (d,) and (d, d)
        Expansion of the rows.
    scaled : int array, shape (k,)
        Entries with coordinates of their own.
    """
    if scaled.size == 0:
        return _of_surrogate(exact, x, anchor, gradient, hessian)
    slope, curvature = _derivatives(exact, x, anchor, scaled)
    precision = _of_rows(hessian, scaled) - curvature
    scale, z = precision**-0.5, x[scaled]
    point = _displaced(x, anchor, scaled, slope / precision + scale * z)
    value, total = _of_surrogate(exact, point, anchor, gradient, hessian)
    own = total[scaled]
    by_slope = own / precision
    by_curvature = by_slope * (slope / precision + 0.5 * z * scale) + 0.5 / precision
    total = total + _through_slope(exact, x, anchor, scaled, by_slope, scale)
    total += _through_curvature(exact, x, anchor, scaled, by_curvature, scale)
    total[scaled] = own * scale
    return value + np.log(scale).sum(), total


@register_jitable
def _through_slope(
    exact: Exact, x: NDArray, anchor: NDArray, scaled: NDArray, weights: NDArray, scale: NDArray
) -> NDArray:
    """Gradient of a weighted sum of the first derivatives with respect to the scaled entries."""
    size = np.max(np.abs(weights) / scale)
    if not size > 0.0:
        return np.zeros(x.size)
    ahead = evaluate(exact, _displaced(x, anchor, scaled, weights / size))[1]
    behind = evaluate(exact, _displaced(x, anchor, scaled, -weights / size))[1]
    return 0.5 * size * (ahead - behind)


@register_jitable
def _through_curvature(
    exact: Exact, x: NDArray, anchor: NDArray, scaled: NDArray, weights: NDArray, scale: NDArray
) -> NDArray:
    """Gradient of a weighted sum of the second derivatives with respect to the scaled entries."""
    roots = np.sqrt(np.abs(weights))
    size = np.max(roots / scale)
    if not size > 0.0:
        return np.zeros(x.size)
    total = np.zeros(x.size)
    for sign in (1.0, -1.0):
        way = np.where(sign * weights > 0.0, roots / size, 0.0)
        ahead = evaluate(exact, _displaced(x, anchor, scaled, way))[1]
        behind = evaluate(exact, _displaced(x, anchor, scaled, -way))[1]
        total += sign * (ahead + behind)
    return size * size * total


@register_jitable
def leapfrog(
    exact: Exact,
    known: tuple[NDArray, ...],
    place: NDArray,
    momentum: NDArray,
    gradient: NDArray,
    root: NDArray,
    size: float,
    n_steps: int,
) -> tuple[NDArray, NDArray, float, NDArray]:
    r"""A trajectory of Hamiltonian dynamics, by the method of Stoermer and Verlet.

    With the metric :math:`M^{-1} = L L'` and momenta :math:`p` in units of it, the Hamiltonian is
    :math:`-\log \pi(x) + p' p / 2`. A trajectory preserves volume, and the one that starts at its
    end with the opposite momentum leads back.

    Parameters
    ----------
    exact, known : callable and tuple of arrays
        Arguments of `log_density`, besides the coordinates.
    place, momentum, gradient : float arrays, shape (d,)
        Beginning of the trajectory, and the gradient there.
    root : float array, shape (d, d)
        :math:`L`.
    size : float
        Step size.
    n_steps : int
        Number of steps; the trajectory ends before a point where the log-density is not finite.

    Returns
    -------
    place, momentum : float arrays, shape (d,)
        Its end.
    value : float
        Log-density there; -inf if that is not finite, nats.
    gradient : float array, shape (d,)
    """
    across, value = root.T.copy(), -np.inf
    momentum = momentum + 0.5 * size * np.dot(across, gradient)
    for step in range(n_steps):
        place = place + size * np.dot(root, momentum)
        value, gradient = log_density(exact, place, *known)
        if not math.isfinite(value):
            return place, momentum, -np.inf, gradient
        kick = size if step < n_steps - 1 else 0.5 * size
        momentum = momentum + kick * np.dot(across, gradient)
    return place, momentum, value, gradient


def walk(
    exact: Exact,
    known: tuple[NDArray, ...],
    place: NDArray,
    root: NDArray,
    size: float,
    time: float,
    n_trajectories: int,
    rng: np.random.Generator,
) -> tuple[NDArray, float, int]:
    """Hamiltonian Monte Carlo: a few successive trajectories, each accepted or rejected.

    All trajectories are drawn alike, each with new momenta and a random length and step size. Each
    step of this chain is reversible with respect to the density, and so is the move from its
    beginning to its end.

    Parameters
    ----------
    exact, known, place, root, size
        As in `leapfrog`.
    time : float
        Mean length of the trajectories, in units of the metric.
    n_trajectories : int
    rng : numpy.random.Generator

    Returns
    -------
    place : float array, shape (d,)
        End of the chain.
    acceptance : float
        Mean acceptance probability of the trajectories.
    n_accepted : int
        Trajectories that were accepted.
    """
    value, gradient = log_density(exact, place, *known)
    total, n_accepted = 0.0, 0
    for _ in range(n_trajectories):
        momentum = rng.standard_normal(place.size)
        step_size = size * (0.75 + 0.5 * rng.random())
        n_steps = min(1 + int(2.0 * time / size * rng.random()), _MOST_STEPS)
        energy = value - 0.5 * np.dot(momentum, momentum)
        end, momentum, end_value, end_gradient = leapfrog(
            exact, known, place, momentum, gradient, root, step_size, n_steps
        )
        change = end_value - 0.5 * np.dot(momentum, momentum) - energy
        probability = math.exp(min(change, 0.0)) if change == change else 0.0
        total += probability
        if rng.random() < probability:
            place, value, gradient = end, end_value, end_gradient
            n_accepted += 1
    return place, total / n_trajectories, n_accepted
