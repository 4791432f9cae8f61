"""Rows of a table, one for each model: printed as counts, and written for the site."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from examples.catalogue.run import Run, is_mixed
from examples.catalogue.verdicts import KINDS, SLOWER, is_slow, kind

TOO_SLOW = {"times": 1.5, "more": 2.0}
"""Limit of what a user should have to wait: times as long as NUTS, and seconds more."""

_HEADER = (
    "| model | ends | sampled by | s | r_hat | ESS | NUTS, s | r_hat | ESS |\n"
    "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)

_DIGITS = 0, 2, 0
"""Of seconds, r_hat and effective draws."""


@dataclass(frozen=True)
class Row:
    """How one model was sampled.

    Attributes
    ----------
    model : str
        Name of its file.
    ends : str
        One of `KINDS`.
    sampled_by : str
        Class of the step method.
    ours, nuts : tuple of float
        Seconds, r_hat and effective draws; NaN where a run did not end.
    by_nuts : bool
        Whether NUTS samples it, with every seed that was run.
    slow, too_slow : bool
        Whether ours took longer than NUTS, by two limits.
    """

    model: str
    ends: str
    sampled_by: str
    ours: tuple[float, float, float]
    nuts: tuple[float, float, float]
    by_nuts: bool
    slow: bool
    too_slow: bool


def rows_of(pairs: Mapping[str, Sequence[tuple[Run, Run]]]) -> list[Row]:
    """A row for each model, from its runs by ours and by NUTS with one or several seeds."""
    return [_row(name, runs) for name, runs in pairs.items()]


def _row(name: str, runs: Sequence[tuple[Run, Run]]) -> Row:
    ours, nuts = runs[0]
    by_nuts = all(is_mixed(nuts) for _, nuts in runs)
    slow = (is_slow(ours, nuts), is_slow(ours, nuts, **TOO_SLOW))
    return Row(name, _usual_kind(runs), ours.path, _shown(ours), _shown(nuts), by_nuts, *slow)


def _usual_kind(runs: Sequence[tuple[Run, Run]]) -> str:
    """The kind of most runs; of two that are as frequent, the worse one."""
    counts = Counter(kind(*pair) for pair in runs)
    return max(reversed(KINDS), key=lambda name: counts[name])


def _shown(run: Run) -> tuple[float, float, float]:
    return (math.nan,) * 3 if run.error else (run.seconds, run.r_hat, run.ess)


def counts(rows: Sequence[Row]) -> str:
    """Lines that count all models, and those that NUTS samples."""
    chosen = [list(rows), [row for row in rows if row.by_nuts]]
    lines = [_line("", "all", "sampled by NUTS"), _line("models", *map(len, chosen))]
    for name in KINDS:
        lines.append(_line(name, *(sum(row.ends == name for row in those) for those in chosen)))
    for title, limit in ((f"slower than {SLOWER} x NUTS", "slow"), (_too_slow(), "too_slow")):
        lines.append(_line(title, *(sum(getattr(row, limit) for row in each) for each in chosen)))
    return "\n".join(lines)


def _line(title: str, first: object, second: object) -> str:
    return f"{title:>34}  {first:>6}  {second:>15}"


def _too_slow() -> str:
    return "slower than {times} x NUTS plus {more:.0f} s".format(**TOO_SLOW)


def write(file: Path, rows: Iterable[Row]) -> None:
    """Keep rows in a file."""
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[\n{lines}\n]\n")


def read(file: Path) -> list[Row]:
    """The rows that a file holds."""
    rows = json.loads(file.read_text())
    return [Row(**row | {name: tuple(row[name]) for name in ("ours", "nuts")}) for row in rows]


def page(versions: Mapping[str, Sequence[Row]]) -> str:
    """Markdown: what the site says of the rows of each version of PyMC.

    Parameters
    ----------
    versions : dict
        Rows by version.
    """
    return "\n\n".join(_section(version, rows) for version, rows in versions.items()) + "\n"


def _section(version: str, rows: Sequence[Row]) -> str:
    own = [row for row in rows if row.by_nuts]
    ends = Counter(row.ends for row in own)
    counted = ", ".join(f"{ends[name]} {name}" for name in KINDS if ends[name])
    too_slow = sum(row.too_slow for row in own)
    lines = [
        f"## PyMC {version}",
        f"Of {len(rows)} models NUTS samples {len(own)}; of these {counted}; "
        f"{too_slow or 'none'} {_too_slow()}.",
        "\n".join([_HEADER, *map(_cells, rows)]),
    ]
    return "\n\n".join(lines)


def _cells(row: Row) -> str:
    numbers = [
        _number(*pair) for run in (row.ours, row.nuts) for pair in zip(run, _DIGITS, strict=True)
    ]
    by = {"AllRowsNUTS": "NUTS"}.get(row.sampled_by, row.sampled_by)
    return "| " + " | ".join([f"`{row.model}`", row.ends, by, *numbers]) + " |"


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else ""
