"""A check of the test at the end of tuning, which makes the test stricter if necessary."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.promise import expected_errors
from pymc_austerity.deciding.sampling import (
    RowFunction,
    Sampling,
    StratifiedSampling,
    UniformSampling,
)
from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.errors import AusterityWarning
from pymc_austerity.rows import RowSource, StratifiedWindows
from pymc_austerity.sequential import StudentTTest, Survey, WangTsiatisTest
from pymc_austerity.setup.normality import SINGLE_ROWS_DECIDE
from pymc_austerity.setup.rows_to_check import RowsToCheck
from pymc_austerity.setup.surroundings import Question
from pymc_austerity.setup.target import Target
from pymc_austerity.strata import Strata

__all__ = ["N_QUESTIONS", "look_again"]

N_QUESTIONS = 4
"""Number of proposals that are checked: each takes a pass over all rows, or millions of them."""

_DECISIONS = 50
"""Number of decisions on each of them, with rows and thresholds drawn anew."""

_MOST_LOOKS = 5_000
"""Limit on the looks of all these decisions, so that small batches of many rows take no longer."""

_SAMPLES = 1_000
_BY_CHANCE = 1e-3
"""Probability that a test which keeps its promise is made stricter."""

_HOPELESS = -40.0
"""Log of the acceptance probability, nats, below which no proposal is accepted anyway."""

_STRICTER, _MOST_TRIES = 0.2, 4


class _Trial(NamedTuple):
    """Results of the present test on the differences of some proposals."""

    check: NormalityCheck
    n_wrong: int
    n_decisions: int
    promised: float

    @property
    def errs(self) -> bool:
        """Whether decisions are wrong more often than promised."""
        return self.errs_beyond(self.promised)

    def errs_beyond(self, share: float) -> bool:
        """Whether significantly more decisions are wrong than this share of them."""
        return bool(binom.sf(self.n_wrong - 1, self.n_decisions, share) < _BY_CHANCE)

    @property
    def words(self) -> str:
        """What is wrong, as a clause."""
        if self.errs:
            return (
                f"at the end of tuning, {self.n_wrong} of {self.n_decisions} trial decisions were "
                f"wrong, more than {self.promised:.2%}"
            )
        return "at the end of tuning, means of first looks are not normal"


def look_again(
    target: Target, decider: Decider, questions: Sequence[Question], rng: np.random.Generator
) -> str:
    """Try the test on proposals of the tuned chain, and make it stricter if it is wrong too often.

    The t statistics of first looks are compared with Student's t, and decisions with those of all
    rows. If the package chose the strictness of the test, for a `max_error` or by default, larger
    first looks, a smaller epsilon, and finally all rows make the test keep its promise.

    Parameters
    ----------
    target : Target
        Differences, and how they are sampled.
    decider : Decider
        Its state is changed.
    questions : sequence of Question
        Proposals from the current point of the chain.
    rng : numpy.random.Generator
        Not the one that makes the draws.

    Returns
    -------
    str
        What was changed, as a sentence; empty if nothing was.

    Warns
    -----
    AusterityWarning
        The test is the user's own and is wrong more often than its epsilon promises, or single
        rows make a proposal impossible.
    """
    assumption = decider.state.test.description.assumption
    before = _epsilon(decider)
    if assumption != "normal means" or decider.target.sampling.is_exact or before == 0.0:
        return ""
    rows = RowsToCheck.of(target.source, decider.target.sampling.strata)
    known, single_rows_decide = _known(target, questions, rows)
    if single_rows_decide:
        return _of_single_rows(decider)
    if not known:
        return ""
    found = ""
    for _ in range(_MOST_TRIES):
        trial = _tried(decider, known, rows, _epsilon(decider) / before, rng)
        if not trial.errs and trial.check.passes:
            return found
        if _is_the_users(decider):
            expected = expected_errors(decider)  # a larger one was warned of before the run
            if trial.errs and (math.isnan(expected) or trial.errs_beyond(expected)):
                _warn(trial)
            return ""
        found = f"{trial.words[0].upper()}{trial.words[1:]}: {_stricter(decider, trial)}."
        if decider.state.test == StudentTTest(0.0):
            return found
    decider.state.test = StudentTTest(0.0)
    return f"{found[:-1]}, which does not suffice: all rows are read from now on."


class _Known(NamedTuple):
    """Differences of the rows, and the rest of the log-ratio of a decision."""

    differences: NDArray[np.float64]
    log_known: float


def _known(
    target: Target, questions: Sequence[Question], rows: RowsToCheck
) -> tuple[list[_Known], bool]:
    """Differences for the proposals, and whether single rows exclude one that the others permit."""
    known, single_rows_decide = [], False
    for new, old, log_ratio in questions:
        log_known = log_ratio + target.exact_part(new, old) + target.expansion(new, old)
        if not math.isfinite(log_known):
            continue
        values = rows.differences(target.row_function, new, old)
        possible = values != -np.inf
        if not possible.all():
            others = rows.total(np.where(possible, values, 0.0))
            single_rows_decide |= bool(log_known + others > _HOPELESS)
        elif np.isfinite(values).all() and np.ptp(values) > 0.0:
            known.append(_Known(values, log_known))
    return known, single_rows_decide


def _of_single_rows(decider: Decider) -> str:
    """Read all rows from now on, or warn that all should be read."""
    where = "at the end of tuning"
    if not _is_the_users(decider):
        decider.state.test = StudentTTest(0.0)
        return f"Single rows make a proposal impossible {where}: all rows are read from now on."
    warnings.warn(
        f"Single rows make a proposal impossible {where} that the other rows permit: "
        f"{SINGLE_ROWS_DECIDE}",
        AusterityWarning,
        stacklevel=4,
    )
    return ""


def _epsilon(decider: Decider) -> float:
    """Tail probability at which the present test stops; 1 for a test that has none."""
    test = decider.state.test
    return test.epsilon if isinstance(test, StudentTTest | WangTsiatisTest) else 1.0


def _tried(
    decider: Decider,
    known: list[_Known],
    rows: RowsToCheck,
    strictness: float,
    rng: np.random.Generator,
) -> _Trial:
    """Decide some questions with a test whose epsilon was multiplied by `strictness`."""
    state, sampling, settings = decider.state, decider.target.sampling, decider.settings
    strata = sampling.strata
    if isinstance(sampling, UniformSampling) and state.batch_size is not None:
        strata = Strata.single(strata.n_rows, min(state.batch_size, strata.n_rows))
    values = [differences for differences, _ in known]
    samples = first_look_statistics(values, strata, n_samples=_SAMPLES, rng=rng, counts=rows.counts)
    n_independent = max(1, len(known) * rows.n_rows // strata.n_first)
    promised = settings.tail
    check = NormalityCheck(
        *samples,
        epsilon=strictness * promised,
        n_independent=min(samples[0].size, n_independent),
        promised=promised,
    )
    n_wrong = n_decisions = n_looks = 0
    for differences, log_known in known:
        total = rows.total(differences)
        for _ in range(_DECISIONS):
            if n_looks > _MOST_LOOKS:
                break
            survey = _survey(sampling, rows.everywhere(differences), state.batch_size, rng)
            decision = state.test.decide(survey, log_known, rng)
            n_wrong += decision.accept != (total > decision.log_threshold)
            n_decisions, n_looks = n_decisions + 1, n_looks + decision.n_looks
    return _Trial(check, n_wrong, n_decisions, promised)


def _survey(
    sampling: Sampling,
    source: RowSource,
    batch_size: int | None,
    rng: np.random.Generator,
) -> Survey:
    """A sample of known differences, drawn as in the chain."""
    nowhere = np.empty(0)
    if isinstance(sampling, StratifiedSampling):
        windows = StratifiedWindows(source, sampling.strata)
        return replace(sampling, function=_as_it_is, windows=windows).begin(nowhere, nowhere, rng)
    assert isinstance(sampling, UniformSampling)
    function: RowFunction = _as_it_is
    draw = type(sampling.draw)(source)  # type: ignore[call-arg]
    known = replace(sampling, function=function, draw=draw)
    return known.begin(nowhere, nowhere, rng, batch_size)


def _as_it_is(proposed: NDArray, current: NDArray, differences: NDArray) -> NDArray:
    """Differences that were computed before."""
    return differences


def _is_the_users(decider: Decider) -> bool:
    """Whether the user chose the test, and not the error of decisions."""
    return decider.settings.is_strictness_given and decider.plan is None


def _stricter(decider: Decider, trial: _Trial) -> str:
    """Make the test of the chain stricter, and return what was changed, as a clause."""
    state, sampling = decider.state, decider.target.sampling
    n_rows, test = sampling.strata.n_rows, state.test
    if not trial.check.passes:
        batch_size = 2 * (state.batch_size or sampling.strata.n_first)
        may_grow = isinstance(sampling, UniformSampling) and decider.settings.batch_size is None
        if may_grow and batch_size < n_rows:
            state.batch_size = batch_size
            return f"{batch_size:,} rows are read at the first look from now on"
    if isinstance(test, StudentTTest | WangTsiatisTest):
        state.test = replace(test, epsilon=_STRICTER * test.epsilon)
        return f"epsilon is {state.test.description.epsilon:.2g} from now on"
    state.test = StudentTTest(0.0)
    return "all rows are read from now on"


def _warn(trial: _Trial) -> None:
    words = trial.words
    warnings.warn(
        f"{words[0].upper()}{words[1:]} by epsilon: choose a smaller epsilon, a larger batch_size, "
        "or max_error= for whole decisions.",
        AusterityWarning,
        stacklevel=4,
    )
