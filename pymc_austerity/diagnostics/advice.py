"""The known facts about a run, and the advice that follows from them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.chains import on_chains
from pymc_austerity.diagnostics.convergence import Convergence, convergence_of, why_not_checked
from pymc_austerity.diagnostics.decisions import audit_table, contradicts, data_usage, needed_audits
from pymc_austerity.diagnostics.run_info import RunInfo, statistics_of

_MOST_ROWS = 0.5
_MANY_LOOKS = 8.0
_ACCEPTANCE_OF_RANDOM_WALK = (0.1, 0.6)


@dataclass(frozen=True)
class Facts:
    """The known facts about a run.

    Parameters
    ----------
    statistics : xarray.Dataset
        Statistics and constants.
    info : RunInfo
        Settings of the run.
    usage, audit : pandas.DataFrame
        Results of `data_usage` and `audit`.
    limit_words : str
        What the limit of wrong decisions is called: "limit", or "allowed by epsilon".
    convergence : Convergence or None
        Whether chains agree, if there are enough draws.
    unchecked : str
        Why there is no `convergence`, as a clause; empty if there is.
    """

    statistics: xr.Dataset
    info: RunInfo
    usage: pd.DataFrame
    audit: pd.DataFrame
    limit_words: str
    convergence: Convergence | None
    unchecked: str


def facts_of(idata: Any, limit: float | None, prob: float, step_method: int | None) -> Facts:
    """Read the known facts about a run."""
    statistics = statistics_of(idata, step_method=step_method)
    info, convergence = RunInfo(statistics), convergence_of(idata)
    return Facts(
        statistics,
        info,
        data_usage(statistics),
        audit_table(statistics, limit, prob, None),
        f"allowed by {info.strictness}" if limit is None else "limit",
        convergence,
        "" if convergence else why_not_checked(idata),
    )


Rule = Callable[[Facts], str | None]


def advice_on(facts: Facts) -> list[str]:
    """What the numbers of a run suggest, most important first; empty if nothing stands out.

    Cost is not mentioned before chains agree and the error is confirmed.
    """
    on_chains, on_errors = _said(_ON_CHAINS, facts)[:1], _said(_ON_ERRORS, facts)
    on_cost = _said(_ON_LOOKS if on_chains or on_errors else _ON_LOOKS + _ON_COST, facts)
    on_length = [] if on_chains else _said(_ON_LENGTH, facts)
    return [*on_chains, *on_errors, *on_cost, *on_length]


def _said(rules: tuple[Rule, ...], facts: Facts) -> list[str]:
    return [advice for rule in rules if (advice := rule(facts))]


def _disagreement(facts: Facts) -> str | None:
    found = on_chains(facts.info, facts.usage, facts.convergence)
    if found is None:
        return None
    wrong, remedy = found
    return f"{wrong[0].upper()}{wrong[1:]}: {remedy}."


def _few_effective_draws(facts: Facts) -> str | None:
    found = facts.convergence
    if found is None or not found.has_few_draws:
        return None
    return (
        f"'{found.ess_name}' has {found.ess:,.0f} effective draws, and final results need 400: "
        f"{found.more_draws or 'take many more draws'}."
    )


def _not_checked(facts: Facts) -> str | None:
    if not facts.unchecked:
        return None
    return (
        f"Convergence was not checked, because {facts.unchecked}: that takes two chains or more "
        "of at least 100 draws each."
    )


def _above_limit(facts: Facts) -> str | None:
    row, info = facts.audit.loc["all"], facts.info
    if not contradicts(row):
        return None
    advice = (
        f"More {info.decision}s are wrong than the {row['limit']:.2%} {facts.limit_words}: "
        f"{info.fewer_errors}."
    )
    if facts.limit_words != "allowed by epsilon" or info.is_bounded or not info.is_normal:
        return advice
    advice += (
        f" (epsilon bounds one look, and a close {info.decision} has many. To accept a larger "
        "share, pass it as limit=.)"
    )
    if info.constant("control_variates") != 0 or info.is_gibbs:
        return advice
    return f"{advice} With control variates few {info.decision}s are close."


def _not_normal(facts: Facts) -> str | None:
    if facts.info.is_normal or facts.info.is_exact or contradicts(facts.audit.loc["all"]):
        return None
    return (
        "Means of first looks were not normal before the run, so only an "
        f"audit shows how many decisions are wrong: {facts.info.more_normal}."
    )


def _no_audit(facts: Facts) -> str | None:
    if facts.audit.loc["all", "n_audited"] > 0 or facts.info.nothing_to_audit:
        return None
    needed = needed_audits(facts.audit.loc["all", "limit"])
    return (
        f"No {facts.info.decision} was checked on all {facts.info.rows}, so the error is "
        f"assumed, not measured: pass {_audit_of(needed, facts)}."
    )


def _undecided_audit(facts: Facts) -> str | None:
    row, info = facts.audit.loc["all"], facts.info
    is_settled = contradicts(row) or not row["wrong_rate_high"] > row["limit"]
    if not row["n_audited"] or is_settled or info.nothing_to_audit:
        return None
    needed = needed_audits(row["limit"])
    if row["n_audited"] < needed:
        return (
            f"{row['n_audited']:.0f} audited {info.decision}s are too few to confirm a rate "
            f"of {row['limit']:.2%}: that takes at least {needed}, all of them right. Pass "
            f"{_audit_of(needed, facts)}."
        )
    share = min(1.0, 4.0 * row["n_audited"] / row["n_decisions"])
    return (
        f"The audit neither confirms nor contradicts the {row['limit']:.2%} {facts.limit_words}: "
        f"pass {_audit_of(share * row['n_decisions'], facts)}, or to be on the safe side "
        f"{info.fewer_errors}."
    )


def _audit_of(needed: float, facts: Facts) -> str:
    """The setting that audits this many decisions of such a run, but at least a tenth of them."""
    tenths = max(1, math.ceil(10.0 * needed / facts.audit.loc["all", "n_decisions"]))
    if tenths <= 10:
        return f"audit={tenths / 10:g} to {facts.info.sampler}"
    return f"audit=1 to {facts.info.sampler}, and take more draws"


def _unmoved_chain(facts: Facts) -> str | None:
    chains = facts.usage.drop(index="all")["acceptance"]
    stuck = ", ".join(map(str, chains.index[chains == 0.0]))
    if not stuck:
        return None
    if facts.info.is_gibbs:
        return f"No entry changed in chain {stuck}: run chains from other places (initvals)."
    return f"Nothing was accepted in chain {stuck}: tune longer."


def _most_rows_read(facts: Facts) -> str | None:
    row, info = facts.usage.loc["all"], facts.info
    if (
        info.of_pymc
        or not row["data_fraction"] > _MOST_ROWS
        or set(info.constants("epsilon")) == {0.0}
    ):
        return None
    gain = (
        f"{info.decision.capitalize()}s read {row['data_fraction']:.0%} of the {info.rows} on "
        "average, so mini-batches gain little."
    )
    if row["data_fraction"] == 1.0 and row["looks_mean"] <= 1.0:
        return f"{gain} The first look is all of them: choose a smaller batch_size."
    if info.is_poisson:
        return f"{gain} A sequential test (epsilon=0.05) reads fewer where bounds are loose."
    if info.is_gibbs:
        return f"{gain} A larger epsilon is cheaper and less exact."
    if info.is_bounded:
        return (
            f"{gain} An inequality seldom decides early: find a smaller bound, or use "
            "Student's t-test (epsilon=) where means of rows are normal."
        )
    if info.constant("control_variates") == 0:
        use = (
            f"{gain} Use control variates where the model allows them (control_variates='auto' "
            "names the reason where it does not)"
        )
        if not info.has_verdicts:
            return f"{use}."
        return f"{use}; a larger {info.strictness} is cheaper and less exact."
    return (
        f"{gain} Proposals may be too long for the control variates, or the chains far from their "
        "anchor: tune longer, or pass an anchor from an earlier run."
    )


def _many_looks(facts: Facts) -> str | None:
    looks, info = facts.usage.loc["all", "looks_mean"], facts.info
    if not looks > _MANY_LOOKS or not _is_sized_by_user(info):
        return None
    return (
        f"{info.a_decision.capitalize()} takes {looks:.1f} looks on average, and can be wrong at "
        "each: double the batch_size, or give max_error= instead of epsilon=."
    )


def _is_sized_by_user(info: RunInfo) -> bool:
    """Whether the user's batch size alone determines the looks of the t-test."""
    return info.has_verdicts and not (info.is_bounded or info.is_designed or info.is_stratified)


def _length_of_random_walk(facts: Facts) -> str | None:
    acceptance = facts.usage.loc["all", "acceptance"]
    low, high = _ACCEPTANCE_OF_RANDOM_WALK
    if facts.info.constant("proposal") != "RandomWalkProposal" or low <= acceptance <= high:
        return None
    if math.isnan(acceptance):
        return None
    length = "long" if acceptance < low else "short"
    return (
        f"{acceptance:.0%} of the proposals are accepted, so the random walk's steps are too "
        f"{length}: tune longer."
    )


_ON_CHAINS: tuple[Rule, ...] = (_unmoved_chain, _disagreement)
_ON_LENGTH: tuple[Rule, ...] = (_few_effective_draws, _not_checked)
_ON_ERRORS: tuple[Rule, ...] = (_above_limit, _not_normal, _no_audit, _undecided_audit)
_ON_LOOKS: tuple[Rule, ...] = (_many_looks,)
_ON_COST: tuple[Rule, ...] = (_most_rows_read, _length_of_random_walk)
