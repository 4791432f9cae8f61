"""Does a Markov kernel leave a distribution invariant? Exact tests for kernels.

Three parts that know nothing of each other: two tests that give p-values, and a way of asking for
p-values again with more effort that keeps the probability of a false alarm.

References
----------
Gandy, A. and Scott, J. (2020). Unit testing for MCMC and other Monte Carlo methods.
arXiv:2001.06465.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.calibration.uniformity import chi_square_of_ranks, rank_among, same_distribution

Kernel = Callable[[NDArray, np.random.Generator], NDArray]
"""One step of a Markov chain, from a point to the next one."""


@dataclass(frozen=True)
class Target:
    """A distribution from which independent draws can be had.

    Attributes
    ----------
    draw : callable
        ``f(rng)``: an independent draw, array of shape (d,).
    statistics : callable
        ``f(points)``: from points, shape (n, d), to what is compared, shape (n, k): the entries,
        and functions of several of them.
    """

    draw: Callable[[np.random.Generator], NDArray]
    statistics: Callable[[NDArray], NDArray]


def rank_p_values(
    kernel: Kernel, target: Target, n: int, rng: np.random.Generator, *, length: int = 20
) -> NDArray:
    """P-values of the exact rank test, one for each statistic.

    A draw from the target is put at a random place of a chain; the chain is run from there to its
    end, and to its beginning with the reversed kernel. If the kernel is reversible and leaves the
    target invariant, all points of the chain are exchangeable with respect to their place, so that
    the rank of the draw is uniform, however slowly the chain mixes.

    Parameters
    ----------
    kernel : callable
        A reversible kernel, which is its own reverse.
    target : Target
        What it should leave invariant.
    n : int
        Number of chains.
    rng : numpy.random.Generator
        Source of all random numbers.
    length : int
        Points of each chain.
    """
    ranks = []
    for _ in range(n):
        start = target.draw(rng)
        before = int(rng.integers(0, length))
        others = _walk(kernel, start, before, rng) + _walk(kernel, start, length - 1 - before, rng)
        values = target.statistics(np.array([start, *others]))
        ranks.append([rank_among(column[0], column[1:], rng) for column in values.T])
    return np.array([chi_square_of_ranks(column, length) for column in np.array(ranks).T])


def two_sample_p_values(
    kernel: Kernel, target: Target, n: int, rng: np.random.Generator, *, n_steps: int = 10
) -> NDArray:
    """P-values of the two-sample test, one for each statistic.

    Draws from the target are moved by the kernel, each a few times, and compared with as many
    other draws. Nothing has to be reversible.

    Parameters
    ----------
    kernel, target, n, rng
        As in `rank_p_values`; `n` is the size of each sample.
    n_steps : int
        Steps of the kernel for each draw.
    """
    moved = [_walk(kernel, target.draw(rng), n_steps, rng)[-1] for _ in range(n)]
    others = [target.draw(rng) for _ in range(n)]
    first, second = (target.statistics(np.array(points)) for points in (moved, others))
    return np.array([same_distribution(a, b) for a, b in zip(first.T, second.T, strict=True)])


def _walk(kernel: Kernel, point: NDArray, n_steps: int, rng: np.random.Generator) -> list[NDArray]:
    points = []
    for _ in range(n_steps):
        point = kernel(point, rng)
        points.append(point)
    return points


def passes(
    p_values: Callable[[int], NDArray],
    n: int,
    *,
    false_alarm: float = 1e-5,
    attempts: int = 7,
    growth: int = 4,
) -> bool:
    r"""Decide from p-values, with more effort only where they leave a doubt.

    With k attempts, :math:`\beta = \alpha / k` and :math:`\gamma = \beta^{1/k}`, the smallest of d
    p-values, times d, fails the test if it is at most :math:`\beta`, passes it above
    :math:`\beta + \gamma`, and else is drawn anew with :math:`\beta / \gamma` instead of
    :math:`\beta`. The i-th attempt is reached with probability :math:`\gamma^{i-1}` at most and
    fails with :math:`\beta \gamma^{1-i}`, so that a correct kernel fails with probability
    :math:`k \beta = \alpha` at most. The second attempt and those after it are the larger ones.

    Parameters
    ----------
    p_values : callable
        ``f(n)``: p-values of a test with effort n, independent at each call.
    n : int
        Effort of the first attempt.
    false_alarm : float
        Largest probability that a correct kernel fails, :math:`\alpha`.
    attempts : int
        How often is asked at most, k.
    growth : int
        How much larger the effort of later attempts is.
    """
    beta = false_alarm / attempts
    gamma = beta ** (1.0 / attempts)
    for attempt in range(attempts):
        found = p_values(n if attempt == 0 else growth * n)
        smallest = found.min() * found.size
        if smallest <= beta:
            return False
        if smallest > beta + gamma:
            return True
        beta /= gamma
    return True
