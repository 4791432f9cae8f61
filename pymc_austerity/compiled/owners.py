"""Sequential tests of several sums at once, each over rows of its own."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled.addresses import address_of_tail
from pymc_austerity.compiled.decisions import compiled_test
from pymc_austerity.parts import compiled_once
from pymc_austerity.sequential import StudentTTest
from pymc_austerity.sequential.stopping import error_if_decided
from pymc_austerity.sequential.surveys import estimate_uniform, merged, moments_of
from pymc_austerity.strata import drawn_number, mixed

_FIRST_LOOK = 200
FEWEST_ROWS = 2 * _FIRST_LOOK
"""Rows from which on a test may save some; with fewer rows all are read."""


@compiled_once
def chances(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each key, independent of the permutation of this key."""
    numbers = np.empty(keys.size)
    for i in range(keys.size):
        numbers[i] = float(mixed(np.uint64(keys[i])) >> np.uint64(11)) * 2.0**-53
    return numbers


class Owners(NamedTuple):
    """The rows of each of T sums: those of some groups, one after the other.

    Attributes
    ----------
    firsts : int array, shape (T + 1,)
        Where the groups of each sum begin among all S groups.
    begins, ends : int array, shape (S,)
        Where the rows of each group begin, and the number of rows of all groups up to it.
    sizes : int array, shape (T,)
        Rows of each sum.
    positions : int array
        Positions in storage of the rows, group by group; empty if they are stored in this order.
    """

    firsts: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    sizes: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        groups: NDArray[np.int64],
        starts: NDArray[np.int64],
        positions: NDArray[np.int64] | None,
        *,
        together: bool,
    ) -> "Owners":
        """One sum for each of some groups, or one for all of them.

        Parameters
        ----------
        groups : int array, shape (S,)
        starts : int array
            Where the rows of every group begin, and where those of the last one end.
        positions : int array or None
            As in the attributes.
        together : bool
            Whether there is one sum.
        """
        firsts = np.array([0, groups.size]) if together else np.arange(groups.size + 1)
        ends = np.cumsum(starts[groups + 1] - starts[groups])
        sizes = np.diff(np.concatenate([[0], ends])[firsts])
        stored = np.empty(0, dtype=np.int64) if positions is None else positions
        return cls(firsts, starts[groups], ends, sizes, stored)


class _Seen(NamedTuple):
    """Number, mean and centered sum of squares of the rows of each sum that were seen."""

    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    squares: NDArray[np.float64]


class Verdicts(NamedTuple):
    """Results of tests.

    Attributes
    ----------
    above : bool array, shape (T,)
        Whether the sum is above the threshold.
    errors : float array, shape (T,)
        Tail probabilities of Student's t when the tests stopped; 0 where all rows were read.
    totals : float array, shape (T,)
        Estimated sums, nats.
    n_rows : int
        Rows that were read, without those of audits.
    n_audited, n_wrong : int
        Tests that were checked on all rows, and those among them that were wrong.
    """

    above: NDArray[np.bool_]
    errors: NDArray[np.float64]
    totals: NDArray[np.float64]
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
    owners: Owners,
    residuals: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    thresholds: NDArray[np.float64],
    settings: SequentialSettings,
    rng: np.random.Generator,
) -> Verdicts:
    r"""Decide whether sums of residuals are above thresholds, reading rows until that is clear.

    The first look reads 200 rows of each sum, and each later look as many again as were read so
    far, drawn uniformly without replacement. Tests are those of `StudentTTest`, which keep the
    relative error of small acceptance probabilities small; they continue as long as all rows that
    were read have equal residuals.

    Parameters
    ----------
    owners : Owners
    residuals : callable
        From positions in storage to residuals, nats.
    thresholds : float array, shape (T,)
        Nats.
    settings : SequentialSettings
        With an `epsilon` in (0, 0.5].
    rng : numpy.random.Generator

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, algorithm 1.
    """
    sizes, n = owners.sizes, owners.sizes.size
    keys, errors = rng.integers(2**63, size=n), np.zeros(n)
    seen = _Seen(np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n))
    rule: Any = StudentTTest(settings.epsilon, relative=True)
    judged = _undecided.py_func
    if address_of_tail() is not None:
        rule, judged = compiled_test(rule), _undecided
    left, upto, n_looks = np.arange(n), _FIRST_LOOK, 1
    while left.size:
        _see(owners, seen, left, upto, residuals(_drawn(owners, seen, left, upto, keys)))
        left = judged(sizes, seen, left, thresholds, rule, n_looks, errors)
        upto, n_looks = 2 * upto, n_looks + 1
    totals, n_rows = sizes * seen.means, int(seen.counts.sum())
    above = np.isfinite(totals) & (totals > thresholds)
    if not settings.audit:
        return Verdicts(above, errors, totals, n_rows, 0, 0)
    checked = np.flatnonzero(chances(keys) < settings.audit)
    left, upto = checked[seen.counts[checked] < sizes[checked]], int(sizes.max(initial=0))
    _see(owners, seen, left, upto, residuals(_drawn(owners, seen, left, upto, keys)))
    of_all = (sizes * seen.means)[left]
    n_wrong = int(((np.isfinite(of_all) & (of_all > thresholds[left])) != above[left]).sum())
    return Verdicts(above, errors, totals, n_rows, checked.size, n_wrong)


@compiled_once
def _undecided(
    sizes: NDArray[np.int64],
    seen: _Seen,
    which: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    rule: Any,
    n_looks: int,
    errors: NDArray[np.float64],
) -> NDArray[np.int64]:
    """The sums whose tests read on; fills in the errors of the others."""
    left = np.empty_like(which)
    n_left = 0
    for t in which:
        moments = seen.counts[t], seen.means[t], seen.squares[t]
        estimate = estimate_uniform(sizes[t], *moments)
        error = error_if_decided(estimate, sizes[t], n_looks, np.inf, thresholds[t], rule)
        if error == error:
            errors[t] = error
        else:
            left[n_left] = t
            n_left += 1
    return left[:n_left]


@compiled_once
def _see(
    owners: Owners, seen: _Seen, which: NDArray[np.int64], upto: int, found: NDArray[np.float64]
) -> None:
    """Merge the residuals of a look, sum by sum."""
    start = 0
    for t in which:
        count = seen.counts[t]
        added = min(upto, owners.sizes[t]) - count
        mean, squares = moments_of(found, start, start + added)
        seen.means[t], seen.squares[t] = merged(
            count, seen.means[t], seen.squares[t], added, mean, squares
        )
        seen.counts[t] = count + added
        start += added


@compiled_once
def _drawn(
    owners: Owners, seen: _Seen, which: NDArray[np.int64], upto: int, keys: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Positions in storage of the rows that a look reads, sum by sum."""
    n = 0
    for t in which:
        n += min(upto, owners.sizes[t]) - seen.counts[t]
    rows, k = np.empty(n, dtype=np.int64), 0
    for t in which:
        size, ends = owners.sizes[t], owners.ends
        before = ends[owners.firsts[t] - 1] if owners.firsts[t] else 0
        for number in range(seen.counts[t], min(upto, size)):
            place = before + drawn_number(number, size, keys[t])
            first, last = owners.firsts[t], owners.firsts[t + 1] - 1
            while first < last:
                middle = (first + last) // 2
                if ends[middle] <= place:
                    first = middle + 1
                else:
                    last = middle
            row = owners.begins[first] + place - (ends[first - 1] if first else 0)
            rows[k] = owners.positions[row] if owners.positions.size else row
            k += 1
    return rows
