"""What to change in the next run: one rule, one function."""

import math
from collections.abc import Callable

from pymc_austerity.diagnostics.audits import contradicts
from pymc_austerity.diagnostics.facts import Facts

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
    row = facts.audit.loc["all"]
    if not contradicts(row):
        return None
    advice = (
        f"More decisions are wrong than the {row['promised']:.2%} {facts.promise}: choose a smaller"
        " epsilon, or read more rows at the first look."
    )
    if facts.promise != "promised":
        advice += (
            " (epsilon bounds one look, and a close decision has many. If you can live with a "
            "larger error, name it: promised=.)"
        )
    if facts.constant("control_variates") == 0:
        advice += (
            " Uniform samples miss rare rows of large influence; control variates with strata "
            "always read them."
        )
    return advice


def _no_audit(facts: Facts) -> str | None:
    if facts.audit.loc["all", "n_audited"] > 0:
        return None
    return (
        "No decision was checked on all rows, so that the error is believed, not measured: run "
        "longer, or some draws with AusterityMH(audit=0.05)."
    )


def _undecided_audit(facts: Facts) -> str | None:
    row = facts.audit.loc["all"]
    n_audited, promised = row["n_audited"], row["promised"]
    if not n_audited or contradicts(row) or row["wrong_rate_high"] <= promised:
        return None
    enough = math.ceil(math.log(0.025) / math.log1p(-promised)) if 0.0 < promised < 1.0 else 0
    if n_audited < enough:
        return (
            f"{n_audited:.0f} audited decisions are too few to confirm a rate of {promised:.2%}: "
            f"that takes at least {enough}, all of them right. Audit more (audit=...)."
        )
    return (
        f"The audit neither confirms nor contradicts the {promised:.2%} {facts.promise}: audit "
        "more (audit=...), or choose a smaller epsilon to be on the safe side."
    )


def _unmoved_chain(facts: Facts) -> str | None:
    chains = facts.usage.drop(index="all")["acceptance"]
    stuck = chains.index[chains == 0.0].tolist()
    if not stuck:
        return None
    return f"Nothing was accepted in chain {', '.join(map(str, stuck))}: tune longer."


def _uneven_chains(facts: Facts) -> str | None:
    rows = facts.usage.drop(index="all")["rows_mean"]
    if not rows.max() > _UNEVEN * rows.min():
        return None
    return (
        f"Chain {rows.idxmax()} reads {rows.max():,.0f} rows per decision, chain {rows.idxmin()} "
        f"{rows.min():,.0f}: they may be in different places. Look at R-hat and the traces."
    )


def _most_rows_read(facts: Facts) -> str | None:
    share = facts.usage.loc["all", "data_fraction"]
    if not share > _MOST_ROWS:
        return None
    gain = f"A decision reads {share:.0%} of the rows on average, so that mini-batches gain little."
    if facts.constant("control_variates") == 0:
        return (
            f"{gain} Use control variates where the model allows for them (control_variates='auto'"
            " names the reason where it does not); a larger epsilon is cheaper and less exact."
        )
    return (
        f"{gain} Proposals may be too long for the control variates, or the chains far from their "
        "anchor: tune longer, or pass an anchor from an earlier run."
    )


def _many_looks(facts: Facts) -> str | None:
    looks = facts.usage.loc["all", "looks_mean"]
    if not looks > _MANY_LOOKS:
        return None
    return (
        f"A decision takes {looks:.1f} looks on average, and each is an occasion to be wrong: "
        "double the batch_size."
    )


def _room_to_spare(facts: Facts) -> str | None:
    epsilon, batch_size = facts.constant("epsilon"), facts.constant("batch_size")
    looks, error = facts.usage.loc["all", "looks_mean"], facts.errors.loc["all", "error_mean"]
    if epsilon is None or batch_size is None or facts.usage.loc["all", "data_fraction"] >= 1.0:
        return None
    if not (looks < 1.02 and error < _ROOM_TO_SPARE * epsilon and batch_size > 100):
        return None
    return (
        f"The first look of {batch_size:,} rows settles nearly every decision with room to spare "
        f"(mean tail probability {error:.1g}): a smaller batch_size would do."
    )


def _length_of_random_walk(facts: Facts) -> str | None:
    acceptance = facts.usage.loc["all", "acceptance"]
    low, high = _ACCEPTANCE_OF_RANDOM_WALK
    if facts.constant("proposal") != "RandomWalk" or low <= acceptance <= high:
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
    _no_audit,
    _undecided_audit,
    _unmoved_chain,
    _uneven_chains,
    _most_rows_read,
    _many_looks,
    _room_to_spare,
    _length_of_random_walk,
)
