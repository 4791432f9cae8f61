"""What a test promises, in words, before any decision."""

import math

from pymc_austerity.deciding.decider import Decider, test_of
from pymc_austerity.deciding.exact import AnyDecider, ExactDecider
from pymc_austerity.deciding.settings import FIREFLY
from pymc_austerity.design import Boundary, NormalityCheck, expected_characteristic, worst_error
from pymc_austerity.design.wording import percentage, share_range, typically

_NOT_NORMAL = (
    "how many decisions are wrong is unknown, because means of first looks are NOT normal enough"
)

_FEW_ACCEPTED = 0.2
"""Acceptance rate at which the expected errors are at the lower end of their range."""


def promise_of(decider: AnyDecider, normality: NormalityCheck | None = None) -> str:
    """How decisions are made, and how often they are wrong: a sentence without its full stop.

    Parameters
    ----------
    decider : Decider or ExactDecider
        The words are those for the first chain, whatever it has learned since.
    normality : NormalityCheck, optional
        Whether the error of the test can be computed.
    """
    test = decider.test.description
    if isinstance(decider, ExactDecider):
        what = "Metropolis-Hastings on some of the rows"
        if test is FIREFLY:
            what = "Firefly Monte Carlo"
        unneeded = ", and there is nothing to audit" if decider.settings.is_audit_given else ""
        return f"exact {what}; no decision can be wrong{unneeded}"
    if test.acceptance == "none":
        return test.summary
    sampling = decider.target.sampling
    if sampling.is_exact and test.has_verdicts:
        return "plain Metropolis-Hastings on all rows, which is exact; no decision can be wrong"
    what = f"Metropolis-Hastings by a sequential test on some of the rows ({_name(decider)})"
    if not test.has_verdicts:
        return f"{what}; decisions are random, so none is right or wrong"
    errors = _errors(decider, normality)
    return f"{what}; {errors}" if errors else what


def _name(decider: Decider) -> str:
    test = decider.test.description
    if decider.plan is not None:
        return "designed while tuning"
    if _has_schedule(decider):
        return "Student's t-test with an epsilon for every draw"
    return test.summary


def _errors(decider: Decider, normality: NormalityCheck | None) -> str:
    """How many decisions are wrong, in words; empty where nothing is known."""
    test = decider.test.description
    if test.needs_bound:
        return f"at most {percentage(test.epsilon)} of decisions are wrong, if the bound is right"
    if normality is not None and not normality.passes:
        return _NOT_NORMAL
    if decider.plan is not None:
        return f"on average at most {percentage(decider.plan.max_error)} of decisions are wrong"
    few, many = _characteristic(decider, _FEW_ACCEPTED)[0], expected_errors(decider)
    if math.isnan(many) or _has_schedule(decider):
        return ""
    return f"expected share of wrong decisions: {share_range(min(few, many), many)}"


def details_of(decider: AnyDecider) -> tuple[str, ...]:
    """Further details of the test, in sentences."""
    if isinstance(decider, ExactDecider) or decider.target.sampling.is_exact:
        return ()
    if decider.plan is not None and decider.worst_case is not None:
        tuning = test_of(decider.worst_case, relative=False).description.summary
        return (
            f"{tuning} while tuning, whose decisions are wrong with a probability of at most "
            f"{decider.plan.max_error:g} in the worst case; then a cheaper test, with this share "
            "of wrong decisions on average.",
        )
    test = decider.test.description
    if not test.has_verdicts or test.needs_bound or math.isnan(test.epsilon):
        return ()
    if _has_schedule(decider):
        return ()
    worst = worst_error(decider.target.sampling.looks, Boundary(test.epsilon, test.alpha))
    return (f"A decision exactly at the threshold is wrong with probability {worst:.2g}.",)


def rows_of(decider: AnyDecider) -> str:
    """Rows that a decision reads, in words."""
    sampling, n_kept = decider.target.sampling, decider.target.n_kept
    if isinstance(decider, ExactDecider):
        n_rows = decider.sampling.groups.n_rows + n_kept
        if decider.test.description is FIREFLY:
            return f"the bright ones of {n_rows:,} rows per decision"
        typical, expected = decider.sampling.typical_rows, decider.sampling.expected_rows
        return typically(n_kept + typical, n_kept + expected, n_rows, "decision")
    strata = decider.target.sampling.strata
    n_rows, n_first = strata.n_rows + n_kept, strata.n_first + n_kept
    if decider.test.description.acceptance == "none":
        return "no rows for decisions"
    if sampling.is_exact:  # type: ignore[attr-defined]
        return f"all {n_rows:,} rows per decision"
    if decider.plan is not None and decider.plan.chooses_batch_size:
        return f"as many of {n_rows:,} rows per decision as the designed test needs"
    share = _characteristic(decider, decider.target.sampling.usual_spread[1])[1]
    if math.isnan(share) or decider.plan is not None or _has_schedule(decider):
        return f"at least {n_first:,} of {n_rows:,} rows per decision"
    return typically(n_first, n_kept + share * strata.n_rows, n_rows, "decision")


def expected_errors(decider: Decider) -> float:
    """Expected share of wrong decisions; NaN where it is not known before the run.

    Parameters
    ----------
    decider : Decider
        Before it has learned anything.
    """
    return _characteristic(decider, decider.target.sampling.usual_spread[1])[0]


def _characteristic(decider: Decider, acceptance: float) -> tuple[float, float]:
    """Expected shares of wrong decisions and of the rows read; NaN where they are not known."""
    test, sampling = decider.test.description, decider.target.sampling
    spread, _ = sampling.usual_spread
    if math.isnan(test.epsilon) or math.isnan(spread) or test.needs_bound:
        return math.nan, math.nan
    boundary = Boundary(test.epsilon, test.alpha)
    return expected_characteristic(sampling.looks, boundary, spread, acceptance=acceptance)


def _has_schedule(decider: Decider) -> bool:
    """Whether the user gave an epsilon for every draw."""
    return decider.schedule is not None and not decider.settings.tightens


def name_of_test(decider: AnyDecider) -> str:
    """Name of the test that decides in the end."""
    if decider.plan is not None:
        return "designed"
    return decider.test.description.name


def verdict_of(check: NormalityCheck | None) -> str:
    """Result of the check of the t-test's assumption."""
    if check is None:
        return "not checked"
    return "passed" if check.passes else "failed"
