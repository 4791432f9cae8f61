"""What to change in the next run: one rule, one function."""

import math
from collections.abc import Callable

from pymc_austerity.diagnostics.audits import contradicts, needed_audits
from pymc_austerity.diagnostics.facts import Facts
from pymc_austerity.diagnostics.run_info import Kind

__all__ = ["advice_on"]

_MOST_ROWS = 0.5
_MANY_LOOKS = 8.0
_UNEVEN = 2.0
_ROOM_TO_SPARE = 1e-3
_ACCEPTANCE_OF_RANDOM_WALK = (0.1, 0.6)


def advice_on(facts: Facts) -> list[str]:
    """What the numbers of a run suggest, most important first; empty if nothing stands out."""
    return [advice for rule in _RULES if (advice := rule(facts))]


def _broken_promise(facts: Facts) -> str | None:
    row, kind = facts.audit.loc["all"], facts.kind
    if not contradicts(row):
        return None
    advice = (
        f"More {kind.decision}s are wrong than the {row['promised']:.2%} {facts.promise}: "
        f"{kind.fewer_errors}."
    )
    if facts.promise == "promised" or kind.is_bounded or not kind.is_normal:
        return advice
    advice += (
        f" (epsilon bounds one look, and a close {kind.decision} has many. If you can live with a "
        "larger error, name it: promised=.)"
    )
    if kind.constant("control_variates") != 0 or kind.is_gibbs:
        return advice
    return f"{advice} With control variates few {kind.decision}s are close."


def _not_normal(facts: Facts) -> str | None:
    if facts.kind.is_normal or facts.kind.is_exact or contradicts(facts.audit.loc["all"]):
        return None
    return (
        "Means of first looks were not normal before the run (step.normality), so that only an "
        f"audit tells how many decisions are wrong: {facts.kind.more_normal}."
    )


def _no_audit(facts: Facts) -> str | None:
    if facts.audit.loc["all", "n_audited"] > 0 or facts.kind.nothing_to_audit:
        return None
    needed = needed_audits(facts.audit.loc["all", "promised"])
    return (
        f"No {facts.kind.decision} was checked on all {facts.kind.rows}, so that the error is "
        f"believed, not measured: pass {_audit_of(needed, facts)}."
    )


def _undecided_audit(facts: Facts) -> str | None:
    row, kind = facts.audit.loc["all"], facts.kind
    is_settled = contradicts(row) or not row["wrong_rate_high"] > row["promised"]
    if not row["n_audited"] or is_settled or kind.nothing_to_audit:
        return None
    needed = needed_audits(row["promised"])
    if row["n_audited"] < needed:
        return (
            f"{row['n_audited']:.0f} of the {kind.decision}s audited is too few to confirm a rate "
            f"of {row['promised']:.2%}: that takes at least {needed}, all of them right. Pass "
            f"{_audit_of(needed, facts)}."
        )
    share = min(1.0, 4.0 * row["n_audited"] / row["n_decisions"])
    return (
        f"The audit neither confirms nor contradicts the {row['promised']:.2%} {facts.promise}: "
        f"pass {_audit_of(share * row['n_decisions'], facts)}, or to be on the safe side "
        f"{kind.fewer_errors}."
    )


def _audit_of(needed: float, facts: Facts) -> str:
    """The setting that audits so many decisions of such a run: a tenth of them at least."""
    tenths = max(1, math.ceil(10.0 * needed / facts.audit.loc["all", "n_decisions"]))
    if tenths <= 10:
        return f"audit={tenths / 10:g} to {facts.kind.sampler}"
    return f"audit=1 to {facts.kind.sampler}, and take more draws"


def _unmoved_chain(facts: Facts) -> str | None:
    chains = facts.usage.drop(index="all")["acceptance"]
    stuck = ", ".join(map(str, chains.index[chains == 0.0]))
    if not stuck:
        return None
    if facts.kind.is_gibbs:
        return f"No entry changed in chain {stuck}: run chains from other places (initvals)."
    return f"Nothing was accepted in chain {stuck}: tune longer."


def _uneven_chains(facts: Facts) -> str | None:
    rows = facts.usage.drop(index="all")["rows_mean"]
    if not rows.max() > _UNEVEN * rows.min():
        return None
    return (
        f"Chain {rows.idxmax()} reads {rows.max():,.0f} {facts.kind.rows} per "
        f"{facts.kind.decision}, chain {rows.idxmin()} "
        f"{rows.min():,.0f}: they may be in different places. Look at R-hat and the traces."
    )


def _most_rows_read(facts: Facts) -> str | None:
    row, kind = facts.usage.loc["all"], facts.kind
    if not row["data_fraction"] > _MOST_ROWS or set(kind.constants("epsilon")) == {0.0}:
        return None
    gain = (
        f"{kind.decision.capitalize()}s read {row['data_fraction']:.0%} of the {kind.rows} on "
        "average, so that mini-batches gain little."
    )
    if row["data_fraction"] == 1.0 and row["looks_mean"] <= 1.0:
        return f"{gain} The first look is all of them: choose a smaller batch_size."
    if kind.is_gibbs:
        return f"{gain} A larger epsilon is cheaper and less exact."
    if kind.is_bounded:
        return (
            f"{gain} An inequality seldom settles anything early: find a smaller bound, or use "
            "Student's t-test (epsilon=) where means of rows are normal."
        )
    if kind.constant("control_variates") == 0:
        use = (
            f"{gain} Use control variates where the model allows for them (control_variates='auto'"
            " names the reason where it does not)"
        )
        if not kind.has_verdicts:
            return f"{use}."
        return f"{use}; a larger {kind.strictness} is cheaper and less exact."
    return (
        f"{gain} Proposals may be too long for the control variates, or the chains far from their "
        "anchor: tune longer, or pass an anchor from an earlier run."
    )


def _many_looks(facts: Facts) -> str | None:
    looks, kind = facts.usage.loc["all", "looks_mean"], facts.kind
    if not looks > _MANY_LOOKS or not _is_sized_by_user(kind):
        return None
    return (
        f"{kind.a_decision.capitalize()} takes {looks:.1f} looks on average, and each is an "
        "occasion to be wrong: double the batch_size."
    )


def _is_sized_by_user(kind: Kind) -> bool:
    """Whether the looks of the t-test are those of the user's batch size and of nothing else."""
    return kind.has_verdicts and not (kind.is_bounded or kind.is_designed or kind.is_stratified)


def _room_to_spare(facts: Facts) -> str | None:
    kind = facts.kind
    epsilon, batch_size = kind.constant("epsilon"), kind.constant("batch_size")
    looks, error = facts.usage.loc["all", "looks_mean"], facts.errors.loc["all", "error_mean"]
    if epsilon is None or batch_size is None or facts.usage.loc["all", "data_fraction"] >= 1.0:
        return None
    if not (looks < 1.02 and error < _ROOM_TO_SPARE * epsilon and batch_size > 100):
        return None
    if not _is_sized_by_user(kind):
        return None
    return (
        f"The first look of {batch_size:,} {kind.rows} settles nearly every {kind.decision} with "
        f"room to spare (mean tail probability {error:.1g}): a smaller batch_size would do."
    )


def _length_of_random_walk(facts: Facts) -> str | None:
    acceptance = facts.usage.loc["all", "acceptance"]
    low, high = _ACCEPTANCE_OF_RANDOM_WALK
    if facts.kind.constant("proposal") != "RandomWalkProposal" or low <= acceptance <= high:
        return None
    if math.isnan(acceptance):
        return None
    length = "long" if acceptance < low else "short"
    return (
        f"{acceptance:.0%} of the proposals are accepted, so that the random walk's steps are too "
        f"{length}: tune longer."
    )


_RULES: tuple[Callable[[Facts], str | None], ...] = (
    _broken_promise,
    _not_normal,
    _no_audit,
    _undecided_audit,
    _unmoved_chain,
    _uneven_chains,
    _most_rows_read,
    _many_looks,
    _room_to_spare,
    _length_of_random_walk,
)
