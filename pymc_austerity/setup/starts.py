"""Where chains start."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals import Layout, Proposal
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

    Without an approximation, real entries are moved uniformly within (-1, 1), as in PyMC's NUTS, or
    as the method ``disperse(layout, point, radius, rng)`` of the proposal has it.

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
    point, about = target.start, target.surrogate or target.approximation
    if len(target.modes) > 1:
        about = target.modes[rng.integers(len(target.modes))]

    def is_possible(candidate: NDArray) -> bool:
        return target.is_possible(candidate, point)

    if about is not None:
        return disperse(about.dispersed, point, is_possible, rng, is_left=is_left)
    move = getattr(proposal, "disperse", moved_uniformly)
    return disperse(
        lambda radius, rng: move(target.layout, point, radius, rng),
        point,
        is_possible,
        rng,
        width=1.0,
    )


def moved_uniformly(
    layout: Layout, point: NDArray, radius: float, rng: np.random.Generator
) -> NDArray:
    """A point whose real entries were moved by the radius at most."""
    real = layout.n_categories == 0
    return point + np.where(real, rng.uniform(-radius, radius, size=point.size), 0.0)


def disperse(
    dispersed: Callable[[float, np.random.Generator], NDArray],
    point: NDArray,
    is_possible: Callable[[NDArray], bool],
    rng: np.random.Generator,
    *,
    is_left: Callable[[NDArray], bool] = lambda start: True,
    width: float = 2.0,
) -> NDArray:
    """The first suitable one of ten candidates, each less wide than the one before.

    Parameters
    ----------
    dispersed : callable
        ``f(width, rng)``: a candidate.
    point : array, shape (d,)
        The start if no candidate is possible. If some are but none is left, the last of these is.
    is_possible : callable
        Whether the log-density at a point is finite. After a point where it is not, candidates are
        half as wide.
    rng : numpy.random.Generator
        Source of randomness.
    is_left : callable
        Whether proposals from a point are accepted. After one that none leaves, candidates are
        three quarters as wide.
    width : float
        Of the first candidate.
    """
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
