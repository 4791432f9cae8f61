"""Sequential tests of sums over many rows: one for each of some levels, or one for all of them."""

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from pymc_austerity.levels.rows import LevelRows
from pymc_austerity.sequential import relative_excess, weight_of_variance
from pymc_austerity.sequential.estimates import Segments, merged
from pymc_austerity.sequential.t_tests import is_clear

_ODD, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_DENSE = 4
"""A list of all numbers is made if at least one in this many of them is drawn."""

_FIRST_LOOK = 200
FEWEST_ROWS = 2 * _FIRST_LOOK
"""Rows from which on a test may save some; with fewer rows all are read."""

_excess = np.vectorize(relative_excess, otypes=[np.float64])


@numba.njit(cache=True)
def _uniform(key: int, k: int) -> float:
    """The k-th number in [0, 1) of the generator SplitMix64 whose seed is a key."""
    x = np.uint64(key) + _ODD * np.uint64(k + 2)
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) * 2.0**-53


@numba.njit(cache=True)
def chances(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each key, independent of the permutation of this key."""
    numbers = np.empty(keys.size)
    for i in range(keys.size):
        numbers[i] = _uniform(keys[i], -1)
    return numbers


@numba.njit(cache=True)
def first_of_permutation(n: int, m: int, key: int) -> NDArray[np.int64]:
    """The first m numbers of the random permutation of 0, 1, ..., n - 1 that a key determines.

    Parameters
    ----------
    n, m : int
        Length of the permutation, and how many of its numbers to draw, at most n.
    key : int
        A random number, drawn anew for each permutation.

    Returns
    -------
    int array, shape (m,)
        With a smaller m, the beginning of the same array.

    Notes
    -----
    The shuffle of Fisher and Yates. A table holds the places that were swapped; every other place
    has its own number. Random numbers are those of SplitMix64 (Steele, Lea and Flood, 2014).

    References
    ----------
    Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number generators.
    OOPSLA.

    Examples
    --------
    >>> sorted(first_of_permutation(5, 5, 123).tolist())
    [0, 1, 2, 3, 4]
    """
    numbers = np.empty(m, dtype=np.int64)
    if _DENSE * m >= n:
        every = np.arange(n)
        for k in range(m):
            j = k + int(_uniform(key, k) * (n - k))
            numbers[k], every[j] = every[j], every[k]
        return numbers
    size = 2
    while size < 4 * m:
        size *= 2
    places, contents = np.full(size, -1), np.empty(size, dtype=np.int64)
    for k in range(m):
        j = k + int(_uniform(key, k) * (n - k))
        slot, own = _slot(places, j), _slot(places, k)
        moved = contents[own] if places[own] == k else k
        numbers[k] = contents[slot] if places[slot] == j else j
        places[slot], contents[slot] = j, moved
    return numbers


@numba.njit(cache=True)
def _slot(places: NDArray[np.int64], place: int) -> int:
    """Where a place is in the table, or would be: the next free slot after its own."""
    last = places.size - 1
    slot = int((np.uint64(place) * _ODD) >> np.uint64(40)) & last
    while places[slot] != place and places[slot] >= 0:
        slot = (slot + 1) & last
    return slot


class Populations(NamedTuple):
    """The rows of each of T tests: those of some levels, one after the other.

    Attributes
    ----------
    levels : int array, shape (S,)
        Levels of all tests.
    firsts : int array, shape (T + 1,)
        Where the levels of each test begin in this list.
    sizes : int array, shape (T,)
        Rows of each test.
    rows : LevelRows
    """

    levels: NDArray[np.int64]
    firsts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    rows: LevelRows

    @classmethod
    def each(cls, levels: NDArray[np.int64], rows: LevelRows) -> "Populations":
        """One test for each of some levels."""
        return cls(levels, np.arange(levels.size + 1), np.diff(rows.starts)[levels], rows)

    @classmethod
    def together(cls, levels: NDArray[np.int64], rows: LevelRows) -> "Populations":
        """One test for all of some levels."""
        size = np.diff(rows.starts)[levels].sum(keepdims=True)
        return cls(levels, np.array([0, levels.size]), size, rows)


class Verdicts(NamedTuple):
    """Results of tests.

    Attributes
    ----------
    above : bool array, shape (T,)
        Whether the mean is above the threshold.
    errors : float array, shape (T,)
        Tail probabilities of Student's t when the tests stopped; 0 where all rows were read.
    means : float array, shape (T,)
        Of the rows that were read, nats.
    n_rows : int
        Rows that were read, without those of audits.
    n_audited, n_wrong : int
        Tests that were checked on all rows, and those among them that were wrong.
    """

    above: NDArray[np.bool_]
    errors: NDArray[np.float64]
    means: NDArray[np.float64]
    n_rows: int
    n_audited: int
    n_wrong: int


class SequentialSettings(NamedTuple):
    """When tests stop, and how many are checked.

    Attributes
    ----------
    epsilon : float
        Largest tail probability at which a test stops; at 0 there are no tests.
    audit : float
        Share of the tests that are checked on all rows.
    """

    epsilon: float = 0.0
    audit: float = 0.0


def decide_each(
    populations: Populations,
    residuals: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    thresholds: NDArray[np.float64],
    settings: SequentialSettings,
    rng: np.random.Generator,
) -> Verdicts:
    r"""Decide whether means of residuals are above thresholds, reading rows until that is clear.

    The first look reads 200 rows of each test, and each later look as many again as were read so
    far, drawn uniformly without replacement. A test stops when the tail probability of its t
    statistic is below `epsilon`; it continues as long as all rows that were read have equal
    residuals, or a verdict *above* would raise a small acceptance probability by more than a share
    of `epsilon` (see `pymc_austerity.sequential.relative_excess`). With n of N rows, whose
    residuals have the mean :math:`\bar r` and the standard deviation :math:`s`, and the threshold
    :math:`\mu_0`, the statistic is

    .. math:: t = (\bar r - \mu_0) \Big/ \frac{s}{\sqrt n} \sqrt{1 - \frac{n - 1}{N - 1}} .

    Parameters
    ----------
    populations : Populations
    residuals : callable
        From positions in storage to residuals, nats.
    thresholds : float array, shape (T,)
        Nats per row.
    settings : SequentialSettings
        With an `epsilon` in (0, 0.5].
    rng : numpy.random.Generator

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, algorithm 1.
    """
    sizes = populations.sizes
    keys = rng.integers(2**63, size=sizes.size)
    means, squares, errors = np.zeros((3, sizes.size))
    n_seen, upto, open_ = np.zeros(sizes.size, dtype=np.int64), _FIRST_LOOK, np.arange(sizes.size)
    while open_.size:
        own = sizes[open_]
        count = np.minimum(upto, own)
        found = residuals(_rows_of_look(populations, open_, keys, n_seen[open_], count))
        with np.errstate(invalid="ignore", divide="ignore"):
            _merge(found, count - n_seen[open_], n_seen[open_], means, squares, open_)
            distance = own * (means[open_] - thresholds[open_])
            variance = weight_of_variance(own, count) * (squares[open_] / (count - 1.0))
            standard_error = np.sqrt(variance)
            tails = stdtr(count - 1.0, -abs(distance) / standard_error)
        is_certain = (count == own) | ~np.isfinite(means[open_])
        has_spread = standard_error > 0.0  # equal residuals tell nothing about the others
        excess = np.zeros(own.size)
        rises = np.flatnonzero(has_spread & (tails < settings.epsilon) & (distance > 0.0))
        excess[rises] = _excess(distance[rises], standard_error[rises])
        is_over = is_certain | (has_spread & is_clear(tails, excess, settings.epsilon))
        errors[open_] = np.where(is_certain, 0.0, tails)
        n_seen[open_] = count
        open_, upto = open_[~is_over], 2 * upto
    above, n_rows, chosen = means > thresholds, int(n_seen.sum()), np.empty(0, dtype=np.intp)
    if settings.audit:
        chosen = np.flatnonzero(chances(keys) < settings.audit)
    left = chosen[n_seen[chosen] < sizes[chosen]]
    if left.size:
        found = residuals(_rows_of_look(populations, left, keys, n_seen[left], sizes[left]))
        with np.errstate(invalid="ignore"):
            of_all = means.copy()
            _merge(found, (sizes - n_seen)[left], n_seen[left], of_all, squares, left)
        n_wrong = int(((of_all > thresholds) != above)[left].sum())
        return Verdicts(above, errors, means, n_rows, chosen.size, n_wrong)
    return Verdicts(above, errors, means, n_rows, chosen.size, 0)


def _merge(
    found: NDArray[np.float64],
    counts: NDArray[np.int64],
    n_seen: NDArray[np.int64],
    means: NDArray[np.float64],
    squares: NDArray[np.float64],
    which: NDArray[np.intp],
) -> None:
    """Add blocks of values, one for each test, to means and to sums of squares about them."""
    means[which], squares[which] = merged(
        n_seen, means[which], squares[which], counts, *Segments.of(counts).moments(found)
    )


def _rows_of_look(
    populations: Populations,
    which: NDArray[np.intp],
    keys: NDArray[np.int64],
    since: NDArray[np.int64],
    upto: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Positions in storage of the rows that a look reads, test by test."""
    levels, firsts, sizes, rows = populations
    positions = np.empty(0, dtype=np.int64) if rows.positions is None else rows.positions
    ends = np.cumsum(np.diff(rows.starts)[levels])
    places = (firsts, ends, rows.starts[levels])
    return _drawn(which, sizes, keys, places, positions, since, upto)


@numba.njit(cache=True)
def _drawn(
    which: NDArray[np.intp],
    sizes: NDArray[np.int64],
    keys: NDArray[np.int64],
    places: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    positions: NDArray[np.int64],
    since: NDArray[np.int64],
    upto: NDArray[np.int64],
) -> NDArray[np.int64]:
    firsts, ends, begins = places
    rows, k = np.empty((upto - since).sum(), dtype=np.int64), 0
    for i in range(which.size):
        test = which[i]
        before = ends[firsts[test] - 1] if firsts[test] else 0
        for number in first_of_permutation(sizes[test], upto[i], keys[test])[since[i] :]:
            place = before + number
            first, last = firsts[test], firsts[test + 1] - 1
            while first < last:
                middle = (first + last) // 2
                if ends[middle] <= place:
                    first = middle + 1
                else:
                    last = middle
            begun = ends[first - 1] if first else 0
            row = begins[first] + place - begun
            rows[k] = positions[row] if positions.size else row
            k += 1
    return rows
