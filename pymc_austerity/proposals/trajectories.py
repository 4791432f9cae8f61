"""Leapfrog trajectories, and chains of them: plain functions, which are also compiled by numba."""

import math

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from pymc_austerity.proposals.conditional_scaling import Exact, log_density

__all__ = ["leapfrog", "walk"]

_MOST_STEPS = 500
"""Maximum number of leapfrog steps in a trajectory."""


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
