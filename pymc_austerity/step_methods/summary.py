"""What was built: as constants of the run, and in one line."""

import math
from typing import Any

from pymc_austerity.deciding.choice import AnyDecider
from pymc_austerity.deciding.promise import name_of_test, promise_of, verdict_of
from pymc_austerity.design import NormalityCheck
from pymc_austerity.proposals import Proposal
from pymc_austerity.setup.target import Target

__all__ = ["constants_of", "summary_of"]


def constants_of(
    target: Target,
    decider: AnyDecider,
    proposal: Proposal[Any],
    normality: NormalityCheck | None,
) -> dict[str, Any]:
    """What is constant over a run of AusterityMH, as numbers and strings."""
    settings, plan = decider.settings, decider.plan
    constants = {
        "epsilon": settings.final_epsilon,
        "max_error": math.nan if settings.max_error is None else settings.max_error,
        "test": name_of_test(decider),
        "acceptance_rule": settings.description.acceptance,
        "assumption": settings.description.assumption,
        "proposal": type(proposal).__name__,
        "proposal_rows": getattr(proposal, "n_rows_read", 0),
        "audit": decider.audits.share,
        "steps_per_draw": settings.steps_per_draw,
        "control_variates": 0 if target.anchor is None else target.anchor.order,
        "normality": verdict_of(normality),
        **target.sampling.constants,
    }
    if plan is not None and plan.chooses_batch_size:
        constants["batch_size"] = math.nan
    return constants


def summary_of(
    target: Target,
    decider: AnyDecider,
    proposal: Proposal[Any],
    normality: NormalityCheck | None,
) -> str:
    """How rows are sampled, what the test promises, and who proposes, in one line."""
    n_rows = target.source.n_rows
    words = (target.summary, promise_of(decider, normality), _in_words(proposal, n_rows))
    return "; ".join(words)


def _in_words(proposal: Proposal[Any], n_rows: int) -> str:
    """Name of the proposal, and how many of the rows its gradients read."""
    name, n_read = type(proposal).__name__, getattr(proposal, "n_rows_read", 0)
    if n_read == 0:
        return f"{name} proposal"
    return f"{name} proposal with gradients of {'all' if n_read == n_rows else f'{n_read:,}'} rows"
