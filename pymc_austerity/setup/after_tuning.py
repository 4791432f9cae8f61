"""A check of the test at the end of tuning, which makes the test stricter if necessary."""

import math
from collections.abc import Iterator, Sequence
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
from pymc_austerity.design import NormalityCheck
from pymc_austerity.errors import warn_user
from pymc_austerity.rows import RowSource, StratifiedWindows
from pymc_austerity.sequential import StudentTTest, Survey
from pymc_austerity.setup.embedding import Question
from pymc_austerity.setup.normality import SINGLE_ROWS_DECIDE, RowsToCheck
from pymc_austerity.setup.target import Target

N_QUESTIONS = 4
"""Number of proposals that are checked: each takes a pass over all rows, or millions of them."""

_DECISIONS = 50
"""Number of decisions on each of them, with rows and thresholds drawn anew."""

_MOST_LOOKS = 5_000
"""Limit on the looks of all these decisions, so that small batches of many rows take no longer."""

_BY_CHANCE = 1e-3
"""Probability that a test which keeps its promise is made stricter."""

_HOPELESS = -40.0
"""Log of the acceptance probability, nats, below which no proposal is accepted anyway."""

_STRICTER, _SMALLEST = 0.2, 1e-4
"""Factor of epsilon, and the epsilon below which it is no longer made smaller."""

_ALL_ROWS = StudentTTest(0.0)


class _Trial(NamedTuple):
    """Results of the present test on the differences of some proposals."""

    check: NormalityCheck
    n_wrong: int
    n_decisions: int
    limit: float

    @property
    def errs_at_all(self) -> bool:
        """Whether more decisions are wrong than the limit, be it by chance."""
        return self.n_wrong > self.limit * self.n_decisions

    @property
    def errs(self) -> bool:
        """Whether decisions are wrong more often than the limit."""
        return self.errs_beyond(self.limit)

    def errs_beyond(self, share: float) -> bool:
        """Whether significantly more decisions are wrong than this share of them."""
        return bool(binom.sf(self.n_wrong - 1, self.n_decisions, share) < _BY_CHANCE)

    @property
    def words(self) -> str:
        """What is wrong, as a clause."""
        if self.errs:
            return (
                f"at the end of tuning, {self.n_wrong} of {self.n_decisions} trial decisions were "
                f"wrong, more than {self.limit:.2%}"
            )
        return "at the end of tuning, means of first looks are not normal"


def look_again(
    target: Target, decider: Decider, questions: Sequence[Question], rng: np.random.Generator
) -> str:
    """Try the test on proposals of the tuned chain, and make it stricter if it is wrong too often.

    The t statistics of first looks are compared with Student's t, and decisions with those of all
    rows. If the package chose the strictness of the test, for a `max_error` or by default, larger
    first looks and a smaller epsilon make the test keep its promise. All rows are read if half of
    them do not suffice, or if the user chose the size of the first look.

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
    before, batch_size = _epsilon(decider), decider.state.batch_size
    if assumption != "normal means" or decider.target.sampling.is_exact or before == 0.0:
        return ""
    words, rows, known = "", None, list[_Known]()
    while decider.state.test != _ALL_ROWS:
        needed = RowsToCheck.of(target.source, decider.sampling.strata)
        if rows is None or needed.n_rows > rows.n_rows:
            rows, (known, single_rows_decide) = needed, _known(target, questions, needed)
            if single_rows_decide:
                return _of_single_rows(decider)
        if not known:
            break
        trial = _tried(decider, known, rows, _epsilon(decider) / before, rng)
        if trial.check.passes and not (trial.errs_at_all if words else trial.errs):
            break
        if _is_the_users(decider):
            expected = expected_errors(decider)  # a larger one was warned of before the run
            if trial.errs and (math.isnan(expected) or trial.errs_beyond(expected)):
                _warn(trial)
            return ""
        words = words or trial.words
        _make_stricter(decider, trial)
    if not words:
        return ""
    changes = " and ".join(_changes(decider, before, batch_size))
    return f"{words[0].upper()}{words[1:]}: {changes} from now on."


def _changes(decider: Decider, epsilon: float, batch_size: int | None) -> Iterator[str]:
    """What is different from before, as clauses."""
    state = decider.state
    if state.test == _ALL_ROWS:
        yield "all rows are read"
        return
    if state.batch_size != batch_size:
        yield f"{state.batch_size:,} rows are read at the first look"
    if _epsilon(decider) != epsilon:
        yield f"epsilon is {_epsilon(decider):.2g}"


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
        log_known = log_ratio + target.row_free_part(new, old) + target.expansion(new, old)
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
        decider.state.test = _ALL_ROWS
        return f"Single rows make a proposal impossible {where}: all rows are read from now on."
    warn_user(
        f"Single rows make a proposal impossible {where} that the other rows permit: "
        f"{SINGLE_ROWS_DECIDE}"
    )
    return ""


def _epsilon(decider: Decider) -> float:
    """Tail probability at which the present test stops; 1 for a test that has none."""
    test = decider.state.test
    return test.epsilon if isinstance(test, StudentTTest) else 1.0


def _tried(
    decider: Decider,
    known: list[_Known],
    rows: RowsToCheck,
    strictness: float,
    rng: np.random.Generator,
) -> _Trial:
    """Decide some questions with a test whose epsilon was multiplied by `strictness`."""
    state, sampling, settings = decider.state, decider.sampling, decider.settings
    values, limit = [differences for differences, _ in known], settings.tail
    tail = strictness * limit
    check = rows.check(values, sampling.strata, rng, epsilon=tail, limit=limit)
    n_wrong = n_decisions = n_looks = 0
    for differences, log_known in known:
        total = rows.total(differences)
        for _ in range(_DECISIONS):
            if n_looks > _MOST_LOOKS:
                break
            survey = _survey(sampling, rows.everywhere(differences), rng)
            decision = state.test.decide(survey, log_known, rng)
            n_wrong += decision.accept != (total > decision.log_threshold)
            n_decisions, n_looks = n_decisions + 1, n_looks + decision.n_looks
    return _Trial(check, n_wrong, n_decisions, limit)


def _survey(sampling: Sampling, source: RowSource, rng: np.random.Generator) -> Survey:
    """A sample of known differences, drawn as in the chain."""
    nowhere = np.empty(0)
    if isinstance(sampling, StratifiedSampling):
        windows = StratifiedWindows(source, sampling.strata)
        return replace(sampling, function=_as_it_is, windows=windows).begin(nowhere, nowhere, rng)
    assert isinstance(sampling, UniformSampling)
    function: RowFunction = _as_it_is
    draw = type(sampling.draw)(source)  # type: ignore[call-arg]
    known = replace(sampling, function=function, draw=draw)
    return known.begin(nowhere, nowhere, rng)


def _as_it_is(proposed: NDArray, current: NDArray, differences: NDArray) -> NDArray:
    """Differences that were computed before."""
    return differences


def _is_the_users(decider: Decider) -> bool:
    """Whether the user chose the test, and not the error of decisions."""
    return decider.settings.is_strictness_given and decider.plan is None


def _make_stricter(decider: Decider, trial: _Trial) -> None:
    """Make first looks of the chain larger, or epsilon smaller, or read all rows."""
    state, strata, test = decider.state, decider.sampling.strata, decider.state.test
    n_first = decider.sampling.with_first_look(2 * strata.n_first).strata.n_first
    may_grow = decider.settings.batch_size is None and 2 * n_first <= strata.n_rows
    if isinstance(test, StudentTTest) and test.epsilon > _SMALLEST:
        if may_grow and not trial.check.passes:
            state.batch_size = n_first
        else:
            state.test = replace(test, epsilon=_STRICTER * test.epsilon)
    elif may_grow:
        state.batch_size = n_first
    else:
        state.test = _ALL_ROWS


def _warn(trial: _Trial) -> None:
    words = trial.words
    warn_user(
        f"{words[0].upper()}{words[1:]} by epsilon: choose a smaller epsilon, a larger batch_size, "
        "or max_error= for whole decisions."
    )
