"""The table of the site: which families work, how, how fast, and whether NUTS agrees."""

import math
from collections.abc import Mapping

from examples.families.cell import least_rate
from examples.families.registry import FAMILIES, Family
from examples.hard_models.verdicts import LARGEST_R_HAT, Record, errors_of, measured_with

_LONGEST = 200

HEADER = (
    "| model | works | path | set-up, s | ESS/s to NUTS | means differ by |\n"
    "| --- | --- | --- | ---: | ---: | ---: |"
)
SAID = "What was said:"


def verdict(family: Family, ours: Record, nuts: Record | None, known: Record | None = None) -> str:
    """How a family ended: one of the words that ``docs/families.md`` explains.

    Parameters
    ----------
    family : Family
        What was sampled.
    ours, nuts : Record
        By AusterityMH, and by NUTS; the latter is needed where draws are compared.
    known : Record, optional
        By other means, to compare with instead of NUTS.
    """
    if ours.refused:
        return "refused, although it splits" if family.is_row_wise else "refused"
    if ours.error:
        return "error of AusterityMH"
    if nuts is None:
        return "not finished"
    if nuts.error:
        return "error of NUTS"
    right = known or nuts
    if _r_hat(right) > LARGEST_R_HAT:
        return "warned" if _r_hat(ours) > LARGEST_R_HAT and ours.said else "NUTS did not converge"
    agrees = all(each.excess <= 1.0 for each in _errors(ours, right).values())
    if agrees and _r_hat(ours) <= LARGEST_R_HAT:
        return "yes"
    return "warned" if ours.said else "WRONG"


def _errors(ours: Record, right: Record) -> dict:
    return errors_of(ours.found, {name: each.moments for name, each in right.found.items()})


def _r_hat(record: Record) -> float:
    values = [each.r_hat for each in record.found.values()]
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def table(
    ours: Mapping[str, Record], nuts: Mapping[str, Record], known: Mapping[str, Record]
) -> str:
    """Markdown: a sentence that counts, a row for each family, and below it what was said."""
    rows, said = [], []
    for name in FAMILIES:
        if name in ours:
            *cells, words = _cells(FAMILIES[name], ours[name], nuts.get(name), known.get(name))
            rows.append(f"| {' | '.join([FAMILIES[name].title, *cells])} |")
            said += [f"- *{FAMILIES[name].title}*: {words}"] if words else []
    made = [count(ours, nuts, known), "", measured_with(ours, nuts, known), ""]
    return "\n".join([*made, HEADER, *rows, "", SAID, "", *said, ""])


def count(
    ours: Mapping[str, Record], nuts: Mapping[str, Record], known: Mapping[str, Record]
) -> str:
    """How many families end how, and how many are slower than NUTS."""
    verdicts = [
        verdict(FAMILIES[name], ours[name], nuts.get(name), known.get(name)) for name in ours
    ]
    kinds = sorted(set(verdicts), key=lambda kind: (kind != "yes", kind))
    words = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in kinds)
    ratios = [_ratio(ours[name], nuts.get(name)) for name in ours]
    slower = sum(ratio < 1.0 for ratio in ratios)
    return f"Of {len(ours)} models: {words}. {slower} of them are slower than NUTS."


def line(family: Family, ours: Record, nuts: Record | None, known: Record | None = None) -> str:
    """One family, as a line of text."""
    works, path, setup, ratio, differ, said = _cells(family, ours, nuts, known)
    return f"{family.name}: {works}; {path}; {setup} s; {ratio}; {differ}; {said}"


def _cells(family: Family, ours: Record, nuts: Record | None, known: Record | None) -> list[str]:
    works = verdict(family, ours, nuts, known)
    words = " ".join((ours.error or " ".join(ours.said)).split()).replace("|", "\\|")
    words = words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."
    if ours.error:
        return [works, "", "", "", "", words]
    facts = [works, ours.facts["path"], f"{ours.facts['setup']:.1f}"]
    if nuts is None or nuts.error:
        return [*facts, "", "", words or (nuts.error if nuts else "")]
    largest = max((each.mean for each in _errors(ours, known or nuts).values()), key=abs)
    return [*facts, _short(_ratio(ours, nuts)), f"{abs(largest):.2f} sd", words]


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10.0 else f"{ratio:.2g}"


def _ratio(ours: Record, nuts: Record | None) -> float:
    if nuts is None or ours.error or nuts.error:
        return math.nan
    return least_rate(ours) / least_rate(nuts)
