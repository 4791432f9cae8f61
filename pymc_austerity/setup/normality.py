"""The check of the t-test's assumption, before a run."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import differences_of_all
from pymc_austerity.deciding.exact import AnyDecider, ExactDecider, PoissonSampling
from pymc_austerity.deciding.promise import expected_errors
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.design.wording import percentage
from pymc_austerity.errors import warn_user
from pymc_austerity.proposals import Proposal
from pymc_austerity.rows import LARGEST_BLOCK, ArrayRows, Block, RowSource
from pymc_austerity.setup.surrogate import PILOT_PAIRS
from pymc_austerity.setup.target import Target
from pymc_austerity.strata import Strata
from pymc_austerity.time_limit import end_if_late

_MOST = 2_000_000
_TIMES_AS_MANY = 10
"""Fewest rows of a stratum, as a multiple of those of a first look."""


@dataclass(frozen=True, eq=False)
class RowsToCheck:
    """The first rows of each stratum; the order is random, so they represent the whole stratum.

    Attributes
    ----------
    source : RowSource
        Rows stratum by stratum.
    strata : Strata
    counts : int array, shape (H,)
        Rows of each stratum that are used.
    """

    source: RowSource
    strata: Strata
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, source: RowSource, strata: Strata) -> "RowsToCheck":
        """All rows, unless there are too many."""
        if strata.n_rows <= _MOST:
            return cls(source, strata, strata.sizes)
        shares = np.ceil(strata.sizes * (_MOST / strata.n_rows)).astype(np.int64)
        wanted = np.maximum(shares, _TIMES_AS_MANY * strata.first_counts)
        return cls(source, strata, np.minimum(strata.sizes, wanted))

    @property
    def n_rows(self) -> int:
        """Number of rows that are used."""
        return int(self.counts.sum())

    def differences(
        self, function: Callable[..., NDArray], proposed: NDArray, current: NDArray
    ) -> NDArray[np.float64]:
        """Differences between two points, stratum by stratum, nats."""
        found = []
        for first, end in self._ranges:
            for start in range(first, end, LARGEST_BLOCK):
                end_if_late()
                block = self.source.window(start, min(start + LARGEST_BLOCK, end))
                found.append(function(proposed, current, *block))
        return np.concatenate(found)

    def check(
        self,
        differences: list[NDArray[np.float64]],
        strata: Strata,
        rng: np.random.Generator,
        *,
        epsilon: float,
        limit: float | None = None,
    ) -> NormalityCheck:
        """Compare the t statistics of first looks at some differences with Student's t.

        The strata are those of the rows; their first looks may be larger by now.
        """
        samples = first_look_statistics(
            differences, strata, n_samples=_SAMPLES, rng=rng, counts=self.counts
        )
        n_independent = max(1, len(differences) * self.n_rows // strata.n_first)
        n_independent = min(samples[0].size, n_independent)
        return NormalityCheck(*samples, epsilon=epsilon, n_independent=n_independent, limit=limit)

    def total(self, differences: NDArray[np.float64]) -> float:
        """Sum of the differences over all rows, or an estimate from those that are used, nats."""
        each = self.strata.sizes / self.counts
        return float(np.add.reduceat(differences, self._begins).dot(each))

    def everywhere(self, differences: NDArray[np.float64]) -> RowSource:
        """The differences, repeated in each stratum up to its number of rows."""
        if self.n_rows == self.strata.n_rows:
            return ArrayRows([differences])
        return _Repeated(differences, self)

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """Ends of the rows without a gap; there may be thousands of strata."""
        ends = self.strata.offsets + self.counts
        is_gap = ends[:-1] < self.strata.offsets[1:]
        firsts = self.strata.offsets[np.r_[True, is_gap]]
        return list(zip(firsts.tolist(), ends[np.r_[is_gap, True]].tolist(), strict=True))

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        return np.cumsum(self.counts) - self.counts

    def places(self, indices: NDArray[np.intp]) -> NDArray[np.int64]:
        """Positions, among the rows that are used, of those that represent some rows."""
        own = np.searchsorted(self.strata.offsets, indices, side="right") - 1
        return self._begins[own] + (indices - self.strata.offsets[own]) % self.counts[own]


@dataclass(frozen=True, eq=False)
class _Repeated:
    differences: NDArray[np.float64]
    rows: RowsToCheck

    @property
    def n_rows(self) -> int:
        return self.rows.strata.n_rows

    def window(self, start: int, stop: int) -> Block:
        return self.take(np.arange(start, stop))

    def take(self, indices: NDArray[np.intp]) -> Block:
        return (self.differences[self.rows.places(indices)],)


SINGLE_ROWS_DECIDE = (
    "if these rows are not sampled, points of zero posterior density can be accepted; use "
    "epsilon=0, or write the bound as a prior or a transform."
)
"""Consequence and remedy, as the end of a sentence."""

_PAIRS, _SEED = 3, 17
_SAMPLES = 1_000

_A_LITTLE = 1e-3
_USUAL_SPREAD = 2.38
"""Spread of the sum of the differences along a step of a tuned random walk, nats."""


def check_normality(
    target: Target,
    proposal: Proposal,
    settings: Settings,
    *,
    moving_support: Sequence[str] = (),
    rng: np.random.Generator,
) -> NormalityCheck | None:
    """Compare the t statistic of first looks at differences of the rows with Student's t.

    Parameters
    ----------
    target : Target
        Differences, and how they are sampled.
    proposal : Proposal
        Makes pairs of points where there is no approximation of the posterior.
    settings : Settings
        Which test decides, and how strictly.
    moving_support : sequence of str
        Names of the variables on which the support of the rows depends.
    rng : numpy.random.Generator
        Draws pairs of points and samples.

    Returns
    -------
    NormalityCheck or None
        None where the test does not assume normality, no differences are finite, or all of them
        are the same.

    Warns
    -----
    AusterityWarning
        The t statistic has tails that are too heavy, or single rows can exclude a point.
    """
    sampling = target.sampling
    if settings.description.assumption != "normal means" or isinstance(sampling, PoissonSampling):
        return None
    if sampling.is_exact:
        return None
    strata = sampling.strata
    pairs = _pairs(target, proposal, rng)
    rows = RowsToCheck.of(target.source, strata)
    differences = [rows.differences(target.row_function, *pair) for pair in pairs]
    _warn_of_hard_supports(differences, moving_support)
    differences = [values for values in differences if np.isfinite(values).all()]
    if not differences:
        return None
    check = rows.check(differences, strata, rng, epsilon=settings.tail)
    if not check.statistics.size:
        return None
    if not check.passes:
        warn_user(f"{check} {_remedy(check, strata)}")
    return check


def spread_of_residuals(target: Target, proposal: Proposal) -> float:
    r"""Standard deviation of what the expansion leaves open at a draw of its surrogate, nats.

    Half the variance of the difference between two draws. It is that of the log weights of the
    draws as far as rows determine them; with more than about one, a chain that moves by such draws
    stays for long where a weight is large.

    Parameters
    ----------
    target : Target
        Rows that are sampled.
    proposal : Proposal
        Makes pairs of points where there is no approximation of the posterior.
    """
    pairs = _pairs(target, proposal, np.random.default_rng(_SEED), PILOT_PAIRS)
    function, source = target.row_function, target.source
    totals = [float(differences_of_all(function, *pair, source).sum()) for pair in pairs]
    return float(np.sqrt(np.mean(np.square(totals)) / 2.0))


def _pairs(
    target: Target, proposal: Proposal, rng: np.random.Generator, n_pairs: int = _PAIRS
) -> Iterator[tuple[NDArray, NDArray]]:
    approximation, layout, start = target.approximation, target.layout, target.start
    if target.surrogate is not None:
        yield from target.surrogate.pairs(n_pairs, start.dtype, rng)
        return
    scalable = bool((layout.n_categories == 0).all()) and getattr(proposal, "unconstrained", True)
    for _ in range(n_pairs):
        if approximation is not None:
            both = approximation.root @ rng.standard_normal((start.size, 2))
            proposed, current = (approximation.mean[:, None] + both).T.astype(start.dtype)
            yield proposed, current
            continue
        proposed, _, _ = proposal.propose(proposal.init(layout, None), start, rng)
        yield (_shortened(target, proposed) if scalable else proposed), start


def _shortened(target: Target, proposed: NDArray) -> NDArray:
    """A step of the length that a tuned random walk will take: see `expected_characteristic`."""
    start, length = target.start, _A_LITTLE
    near = (start + length * (proposed - start)).astype(start.dtype)
    differences = differences_of_all(target.row_function, near, start, target.source)
    spread = math.sqrt(differences.size) * float(np.std(differences))
    if not 0.0 < spread < math.inf:
        return proposed
    return (start + length * _USUAL_SPREAD / spread * (proposed - start)).astype(start.dtype)


def _warn_of_hard_supports(
    differences: list[NDArray[np.float64]], moving_support: Sequence[str]
) -> None:
    """Warn of rows that exclude a point, but only if they are read."""
    shares = [np.mean(values == -np.inf) for values in differences]
    found = ""
    if moving_support:
        names = ", ".join(map(repr, moving_support))
        found = f"Single rows make a proposal impossible, as their support depends on {names}"
    elif any(0.0 < share < 1.0 for share in shares):
        found = f"{max(shares):.2%} of the rows make a proposal impossible that the others permit"
    if found:
        warn_user(f"{found}: {SINGLE_ROWS_DECIDE}")


def _remedy(check: NormalityCheck, strata: Strata) -> str:
    if strata.sizes.size == 1:
        return (
            "A few rows weigh too much for uniform samples of this size: sample by influence "
            "(control_variates='auto', sampling='auto'), choose a larger batch_size, or a test "
            "that does not need normal means (pymc_austerity.EmpiricalBernsteinTest)."
        )
    return (
        f"Stratum {check.worst_stratum} deviates most from normality: choose a larger batch_size; "
        "more rows are then always read, and the first look takes more from every stratum."
    )


def warn_if_loose(decider: AnyDecider) -> None:
    """Warn before the run that `epsilon` bounds the error of one look, if decisions take many.

    Parameters
    ----------
    decider : Decider or ExactDecider
        With the settings of the user.

    Warns
    -----
    AusterityWarning
        The expected share of wrong decisions is larger than the epsilon that was given.
    """
    epsilon = decider.settings.epsilon
    if isinstance(decider, ExactDecider) or epsilon is None or callable(epsilon):
        return
    if decider.target.sampling.is_exact:
        return
    expected = expected_errors(decider)
    if math.isnan(expected) or expected <= epsilon:
        return
    warn_user(
        f"epsilon={epsilon:g} bounds the error of one look, and decisions take many: about "
        f"{percentage(expected)} of all decisions will be wrong, which widens the posterior; use "
        f"max_error={epsilon:g} for whole decisions, epsilon=0 for none, or control variates."
    )
