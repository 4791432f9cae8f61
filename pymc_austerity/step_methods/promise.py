"""What a test promises, and who proposes, in words, before anything was decided."""

import math
from typing import Any

from pymc_austerity.design import Boundary, expected_error, worst_error
from pymc_austerity.proposals import Proposal
from pymc_austerity.sequential import BarkerTest, Concentration, StoppingRule, WangTsiatis
from pymc_austerity.step_methods.decisions import Decisions
from pymc_austerity.step_methods.sampling import Sampling

__all__ = ["promise_of", "proposal_in_words"]


def promise_of(decisions: Decisions, sampling: Sampling) -> str:
    """Name of the test, and how often it errs.

    Parameters
    ----------
    decisions : Decisions
        Before the first chain.
    sampling : Sampling
        What they are taken on.
    """
    rule = decisions.state.rule
    if rule is None:
        return "no test, every proposal is accepted"
    if isinstance(rule, BarkerTest):
        return f"Barker test with noise of {rule.noise:g} nats"
    name = f"{type(rule).__name__} test"
    epsilon = getattr(rule, "epsilon", None)
    if epsilon is not None:
        name += f" with epsilon={epsilon:g}"
    if sampling.is_exact:
        return name
    if isinstance(rule, Concentration):
        return f"{name} (wrong decisions: {epsilon:.2g} at most, if the bound is right)"
    if decisions.plan is not None:
        return (
            f"{name}, chosen so that no decision errs more often than {decisions.plan.max_error:g}"
            " in the worst case; a cheaper one for decisions as they come follows after tuning"
        )
    return name + (_errors(rule, sampling) if epsilon is not None else "")


def _errors(rule: StoppingRule, sampling: Sampling) -> str:
    alpha = rule.alpha if isinstance(rule, WangTsiatis) else 0.5
    looks, boundary = sampling.looks, Boundary(getattr(rule, "epsilon", math.nan), alpha)
    worst, expected = worst_error(looks, boundary), math.nan
    spread, acceptance = sampling.usual_spread
    if not math.isnan(spread):
        expected = expected_error(looks, boundary, spread, acceptance=acceptance)
    about = "" if math.isnan(expected) else f", about {expected:.2g} on average"
    return f" (wrong decisions: {worst:.2g} at worst{about})"


def proposal_in_words(proposal: Proposal[Any], n_rows: int) -> str:
    """Name of the proposal, and how many of the rows its gradients read."""
    name, n_read = type(proposal).__name__, getattr(proposal, "n_rows_read", 0)
    if n_read == 0:
        return f"{name} proposal"
    return f"{name} proposal with gradients of {'all' if n_read == n_rows else f'{n_read:,}'} rows"
