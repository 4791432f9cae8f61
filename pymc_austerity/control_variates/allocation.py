"""The number of rows of the first look, chosen from the influence of the rows."""

from typing import NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

__all__ = ["FirstLook", "expected_rows", "first_look_sizes", "sizes_of_largest"]

_OPEN_AFTER_FIRST_LOOK = 0.5
"""Share of the decisions that may need a second look. Decisions that need many looks cost the same
wherever they start, so a small first look is cheap; a tiny one could not estimate spreads."""

_RESOLVING = 0.2
"""Twice the density of the sum at the threshold, per nat, times the overshoot of doubling looks.
Measured on real data, where it lies between 0.1 and 0.3."""


class FirstLook(TypedDict):
    """Limits of first looks, from which their sizes are chosen.

    Attributes
    ----------
    epsilon : float
        Of the test.
    n_strata : int
        Strata besides the rows that are always read.
    fewest_per_stratum : int
        Rows that an estimate of the spread within a stratum needs.
    most : int
        Largest first look in rows, unless `n_strata` with `fewest_per_stratum` are more.
    """

    epsilon: float
    n_strata: int
    fewest_per_stratum: int
    most: int


def first_look_sizes(scores: NDArray[np.float64], **look: Unpack[FirstLook]) -> tuple[int, int]:
    r"""Numbers of rows always read and of rows of each stratum, for the cheapest decisions.

    A look with standard error :math:`s` leaves a decision open if the sum of the differences lies
    within :math:`q s` of the threshold, :math:`q` the normal quantile of epsilon. The threshold
    is spread by :math:`\log u` with a density of at most 1 per nat, on average over the sum's own
    spread of about half of that, so this happens to a share of about :math:`q s`. With the rows in
    :math:`A` always read and the others in strata of the same total score, Neyman's allocation of
    :math:`n` rows has :math:`s = \sum_{i \notin A} r_i / \sqrt n`. That gives :math:`n(A)`.

    Decisions closer to the threshold continue until their standard error resolves the distance, or
    all rows are read; on average that takes a multiple of :math:`q \sqrt N \sum_{i \notin A} r_i`
    rows. The :math:`A` with the smallest total is chosen; if the first look is too large for every
    :math:`A`, that with the smallest :math:`s`.

    Parameters
    ----------
    scores : float array, shape (N,)
        Standard deviation of each row's difference over decisions, :math:`r_i`, nats.
    **look
        As `FirstLook` has it.

    Returns
    -------
    n_take_all, per_stratum : int
    """
    falling = np.sort(scores)[::-1]
    return sizes_of_largest(falling, float(falling.sum()), scores.size, **look)


def sizes_of_largest(
    falling: NDArray[np.float64], total: float, n_rows: int, **look: Unpack[FirstLook]
) -> tuple[int, int]:
    """The same from the largest scores and the sum of all.

    Parameters
    ----------
    falling : float array, shape (at least `most` or N,)
        The largest scores, the first one first, nats.
    total : float
        Sum of all scores, nats.
    n_rows : int
        Number of all rows, N.
    **look
        As `FirstLook` has it.
    """
    choice = _cheapest(falling, total, n_rows, **look)
    return choice.n_take_all, choice.per_stratum


def expected_rows(scores: NDArray[np.float64], **look: Unpack[FirstLook]) -> float:
    """Rows of a decision on average, with first looks of the sizes that are chosen.

    Parameters
    ----------
    scores, **look
        As for `first_look_sizes`.
    """
    falling = np.sort(scores)[::-1]
    return _cheapest(falling, float(falling.sum()), scores.size, **look).expected_rows


class _Choice(NamedTuple):
    n_take_all: int
    per_stratum: int
    expected_rows: float


def _cheapest(
    falling: NDArray[np.float64],
    total: float,
    n_rows: int,
    *,
    epsilon: float,
    n_strata: int,
    fewest_per_stratum: int,
    most: int,
) -> _Choice:
    quantile = float(norm.isf(max(epsilon, 1e-6)))
    candidates = np.unique(np.concatenate([[0], np.geomspace(10, max(most, 11), 40)]).astype(int))
    fewest = n_strata * fewest_per_stratum
    fits = (candidates + fewest <= most) & (candidates < n_rows)
    candidates = candidates[fits | (candidates == 0)]
    left = np.maximum(total - np.concatenate([[0.0], np.cumsum(falling)])[candidates], 0.0)
    wanted = (quantile * left / _OPEN_AFTER_FIRST_LOOK) ** 2
    n_sampled, room = np.maximum(wanted, fewest), np.maximum(most - candidates, fewest)
    further = np.minimum(_RESOLVING * quantile * np.sqrt(n_rows) * left, n_rows)
    affordable = candidates + n_sampled <= most
    cost = candidates + n_sampled + further
    if affordable.any():
        best = int(np.argmin(np.where(affordable, cost, np.inf)))
    else:  # as small a standard error as the most rows give
        best = int(np.argmin(left / np.sqrt(room)))
    per_stratum = min(np.ceil(n_sampled[best] / n_strata), room[best] // n_strata)
    return _Choice(int(candidates[best]), int(per_stratum), float(cost[best]))
