"""The table of the site: how each run ended, how far off it was and what was said."""

import math
from collections import Counter
from collections.abc import Callable, Mapping

from examples.hard_models.moments import Moments
from examples.hard_models.registry import HARD_MODELS
from examples.hard_models.verdicts import Errors, Record, errors_of, measured_with, verdict_of

_LONGEST = 300
Reference = Mapping[str, Moments] | None


def table(records: Mapping[str, Record], references: Mapping[str, Reference]) -> str:
    """Markdown: a count, a row for each model, the worst verdicts first, and what was said."""
    order = ("WRONG", "foreign", "warned", "refused", "right")
    verdicts = {name: verdict_of(record, references[name]) for name, record in records.items()}
    rows = ["| model | ends | mean | spread | r_hat |", "| --- | --- | ---: | ---: | ---: |"]
    said = ["What was said:", ""]
    for name in sorted(records, key=lambda name: order.index(verdicts[name])):
        *cells, words = _cells(records[name], references[name])
        why = HARD_MODELS[name].why
        rows.append(f"| `{name}`: {why} | {verdicts[name]} | {' | '.join(cells)} |")
        said += [f"- `{name}`: {words}"] if words else []
    made = [count(records, references), "", measured_with(records), ""]
    return "\n".join([*made, *rows, "", *said, ""])


def count(records: Mapping[str, Record], references: Mapping[str, Reference]) -> str:
    """How many runs ended how, as one sentence."""
    verdicts = [verdict_of(record, references[name]) for name, record in records.items()]
    numbers = Counter(verdicts)
    parts = [f"{numbers[verdict]} {verdict}" for verdict in
             ("right", "warned", "refused", "foreign", "WRONG")]  # fmt: skip
    alarms = sum(
        verdict == "right" and bool(record.said)
        for verdict, record in zip(verdicts, records.values(), strict=True)
    )
    return f"Of {len(records)} models: {', '.join(parts)}; {alarms} right with a warning."


def line(name: str, record: Record, reference: Reference) -> str:
    """One run, as a line of text."""
    mean, spread, r_hat, said = _cells(record, reference)
    verdict = verdict_of(record, reference)
    return f"{name}: {verdict}; mean {mean}, spread {spread}, r_hat {r_hat}; {said}"


def _cells(record: Record, reference: Reference) -> tuple[str, str, str, str]:
    """Largest error of a mean and of a spread, largest r_hat, and words."""
    words = record.error or " ".join(record.said) or " ".join(record.foreign)
    words = " ".join(words.split()).replace("|", "\\|")
    words = words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."
    if not record.found:
        return "", "", "", words
    r_hat = max((each.r_hat for each in record.found.values()), default=math.nan)
    if reference is None:
        return "no posterior", "no posterior", f"{r_hat:.2f}", words
    errors = errors_of(record.found, reference).values()
    mean = max(errors, key=_size("mean"))
    spread = max(errors, key=_size("spread"))
    return f"{_short(mean.mean)} sd", f"{_short(100 * spread.spread)} %", f"{r_hat:.2f}", words


def _short(value: float) -> str:
    size = abs(value)
    return f"{value:+.2f}" if size < 10 else f"{value:+.0f}" if size < 1e4 else f"{value:+.0e}"


def _size(name: str) -> Callable[[Errors], float]:
    def size(errors: Errors) -> float:
        value = abs(getattr(errors, name))
        return math.inf if math.isnan(value) else value

    return size
