"""What a test promises, in words, before anything was decided."""

import math

from pymc_austerity.deciding.choice import AnyDecider
from pymc_austerity.deciding.decider import Decider, test_of
from pymc_austerity.deciding.exact import ExactDecider
from pymc_austerity.design import Boundary, NormalityCheck, expected_error, worst_error
from pymc_austerity.design.wording import percentage

__all__ = ["expected_errors", "name_of_test", "promise_of", "verdict_of"]

_NOT_NORMAL = " (means of first looks are NOT normal enough to say how often it errs)"


def promise_of(decider: AnyDecider, normality: NormalityCheck | None = None) -> str:
    """Name of the test, and how often it errs.

    Parameters
    ----------
    decider : Decider or ExactDecider
        Whatever it has learnt since, the words are those for the first chain.
    normality : NormalityCheck, optional
        Whether the error of the test can be computed.
    """
    test = decider.test.description
    if isinstance(decider, ExactDecider) or not test.has_verdicts:
        return test.summary
    sampling = decider.target.sampling
    if sampling.is_exact:
        return "no decision can be wrong"
    if test.needs_bound:
        most = f"{test.epsilon:.2g} at most"
        return f"{test.summary} (wrong decisions: {most}, if the bound is right)"
    unknown = "" if normality is None or normality.passes else _NOT_NORMAL
    if decider.plan is not None and decider.worst_case is not None:
        return (
            f"{test_of(decider.worst_case).description.summary} while tuning, chosen so that no "
            f"decision errs more often than {decider.plan.max_error:g} in the worst case, then a "
            f"cheaper one whose decisions err so often on average{unknown}"
        )
    if decider.schedule is not None and not decider.settings.tightens:
        return f"{test.name} test with an epsilon for every draw{unknown}"
    return test.summary + (unknown or _errors(decider))


def expected_errors(decider: Decider) -> float:
    """Expected share of wrong decisions; NaN where it is not known before the run.

    Parameters
    ----------
    decider : Decider
        Before it has learnt anything.
    """
    test, sampling = decider.test.description, decider.target.sampling
    spread, acceptance = sampling.usual_spread
    if math.isnan(test.epsilon) or math.isnan(spread):
        return math.nan
    boundary = Boundary(test.epsilon, test.alpha)
    return expected_error(sampling.looks, boundary, spread, acceptance=acceptance)


def _errors(decider: Decider) -> str:
    test, sampling = decider.test.description, decider.target.sampling
    if math.isnan(test.epsilon):
        return ""
    worst, error = worst_error(sampling.looks, Boundary(test.epsilon, test.alpha)), ""
    expected = expected_errors(decider)
    if not math.isnan(expected):
        error = f"expect about {percentage(expected)} of all decisions to be wrong; "
    return f" ({error}a decision exactly at the threshold is wrong with probability {worst:.2g})"


def name_of_test(decider: AnyDecider) -> str:
    """Name of the test that decides in the end."""
    if decider.plan is not None:
        return "designed"
    return decider.test.description.name


def verdict_of(check: NormalityCheck | None) -> str:
    """What the check of the t-test's assumption found."""
    if check is None:
        return "not checked"
    return "passed" if check.passes else "failed"
