"""Bounds on the differences between two points, as given by the user."""

import math

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import checked_number
from pymc_austerity.errors import SettingError
from pymc_austerity.sequential import BoundOfDifferences

_TINY, _HUGE = 1e-300, 1e300
"""In place of 0, the bound between equal points, and of infinity, far beyond the posterior."""


def bound_between(
    largest_difference: BoundOfDifferences | None, proposed: NDArray, current: NDArray
) -> float:
    """Largest absolute difference between two points, nats; infinite if none was given.

    Raises
    ------
    SettingError, SettingTypeError
        The user's function fails, or does not return a number of nats.
    """
    if largest_difference is None:
        return math.inf
    if not callable(largest_difference):
        return largest_difference
    try:
        bound = largest_difference(proposed, current)
    except Exception as error:
        raise SettingError(
            f"largest_difference(proposed, current) raised {type(error).__name__} ({error}): "
            "give a number of nats, or a function of two points that returns one."
        ) from error
    if isinstance(bound, np.ndarray) and bound.ndim == 0:
        bound = bound[()]
    bound = checked_number(
        "largest_difference(proposed, current)",
        bound,
        lambda value: value >= 0.0,
        "a bound of differences",
        "a function that returns a number of nats, 0 or more",
    )
    return min(max(bound, _TINY), _HUGE)
