"""Where chains start."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals import GaussianApproximation, Layout, Proposal
from pymc_austerity.setup.target import Target

_RETRIES = 10
_NARROWER = 0.75
"""Factor of the width after a start that no proposal leaves."""


def start_of_chain(
    target: Target,
    rng: np.random.Generator,
    *,
    proposal: Proposal[Any],
    is_left: Callable[[NDArray], bool],
) -> NDArray:
    """Overdispersed start about one of the known modes, or about the starting point.

    Moves about an approximation of the posterior hardly ever leave a point where it is far below
    the posterior, relative to other points. There are such points far from the center, in
    directions in which the posterior has heavier tails; no chain starts at one of them, because it
    would stay there.

    Parameters
    ----------
    target : Target
        The posterior.
    rng : numpy.random.Generator
        Source of randomness.
    proposal : Proposal
        The chain's own.
    is_left : callable
        Whether proposals from a point are accepted.
    """
    point = target.start

    def is_possible(candidate: NDArray) -> bool:
        return target.is_possible(candidate, point)

    if len(target.modes) > 1:
        mode = target.modes[rng.integers(len(target.modes))]
        return disperse_about(mode, point, is_possible, rng, is_left=is_left)
    if target.surrogate is not None:
        return _disperse(target.surrogate.dispersed, point, is_possible, is_left, rng)
    if target.approximation is not None:
        return disperse_about(target.approximation, point, is_possible, rng, is_left=is_left)
    return disperse(point, target.layout, is_possible, rng, proposal=proposal)


def disperse(
    point: NDArray,
    layout: Layout,
    is_possible: Callable[[NDArray], bool],
    rng: np.random.Generator,
    *,
    proposal: Any = None,
) -> NDArray:
    """Overdispersed start: real entries moved uniformly within (-1, 1), as in PyMC's NUTS.

    If a proposal disperses points in its own way, its method
    ``disperse(layout, point, radius, rng)`` makes the candidates.

    Parameters
    ----------
    point : array, shape (d,)
        Common starting point of the chains, in unconstrained space.
    layout : Layout
        Kinds of its entries; only real ones are moved.
    is_possible : callable
        Whether the log-density at a point is finite.
    rng : numpy.random.Generator
        Source of randomness.
    proposal : Proposal, optional
        The chain's own.

    Returns
    -------
    array, shape (d,)
        The first possible one of ten candidates, each half as far away as the one before; the
        point itself if there is none.
    """
    move = getattr(proposal, "disperse", _moved_uniformly)
    return _disperse(
        lambda radius, rng: move(layout, point, radius, rng),
        point,
        is_possible,
        lambda start: True,
        rng,
        width=1.0,
    )


def _moved_uniformly(
    layout: Layout, point: NDArray, radius: float, rng: np.random.Generator
) -> NDArray:
    real = layout.n_categories == 0
    return point + np.where(real, rng.uniform(-radius, radius, size=point.size), 0.0)


def disperse_about(
    approximation: GaussianApproximation,
    point: NDArray,
    is_possible: Callable[[NDArray], bool],
    rng: np.random.Generator,
    *,
    is_left: Callable[[NDArray], bool],
) -> NDArray:
    """Overdispersed start: a draw from the normal approximation with twice its spread.

    A start that is not suitable is followed by one that is less wide, half as wide if it is not
    possible, and three quarters if no proposal leaves it.

    Parameters
    ----------
    approximation : GaussianApproximation
        Of the posterior.
    point : array, shape (d,)
        Fallback if none of ten draws is possible. If some are but none is left, the last of these
        is the start.
    is_possible : callable
        Whether the log-density at a point is finite.
    rng : numpy.random.Generator
        Source of randomness.
    is_left : callable
        Whether proposals from a point are accepted.
    """

    def dispersed(width: float, rng: np.random.Generator) -> NDArray:
        return approximation.mean + width * approximation.root.dot(rng.standard_normal(point.size))

    return _disperse(dispersed, point, is_possible, is_left, rng)


def _disperse(
    dispersed: Callable[[float, np.random.Generator], NDArray],
    point: NDArray,
    is_possible: Callable[[NDArray], bool],
    is_left: Callable[[NDArray], bool],
    rng: np.random.Generator,
    width: float = 2.0,
) -> NDArray:
    last = point
    for _ in range(_RETRIES):
        candidate = dispersed(width, rng).astype(point.dtype)
        if not is_possible(candidate):
            width /= 2.0
            continue
        if is_left(candidate):
            return candidate
        last, width = candidate, _NARROWER * width
    return last
