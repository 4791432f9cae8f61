"""The table of the page on groups, from the files that ``python -m examples.many_groups`` keeps."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from examples.benchmarks.grouped_models import GROUPED_MODELS

HEAD = """\
| model | sampler | rows a draw | ready, s | r_hat | least ESS/s | median ESS/s | s to 400 |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""
NAMES = {"ours": "`AusterityMH()`", "nutpie": "nutpie"}
_EFFECTIVE = 400


def read(folder: Path) -> list[dict[str, Any]]:
    """Kept runs, models in the order of `GROUPED_MODELS`, this package first."""
    cells = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    names, samplers = list(GROUPED_MODELS), list(NAMES)
    known = [cell for cell in cells if cell["model"] in names]
    return sorted(known, key=lambda c: (names.index(c["model"]), samplers.index(c["sampler"])))


def table(cells: list[dict[str, Any]]) -> str:
    """All runs, and when and with what they were made."""
    lines = "".join(line(cell) + "\n" for cell in cells)
    return f"{HEAD}{lines}\n" + "".join(_circumstances(cells)) + ("." if cells else "") + "\n"


def line(cell: dict[str, Any]) -> str:
    """One run.

    Examples
    --------
    >>> speed = {"ess_per_second_min": 80.0, "ess_per_second_median": 200.0}
    >>> seconds = {"ready_seconds": 3.0, "tuning_seconds": 1.0}
    >>> about = {"model": "radon", "sampler": "nutpie", "rhat_max": None, "note": ""}
    >>> line(about | speed | seconds)
    '| radon | nutpie |  | 3.0 | - | 80 | 200 | 9 |'
    """
    path, _, rows = cell["note"].removesuffix(" rows a draw").partition(", ")
    sampler = NAMES[cell["sampler"]] + (", NUTS" if path == "AllRowsNUTS" else "")
    worst = "-" if cell["rhat_max"] is None else f"{cell['rhat_max']:.3f}"
    least, median = (_number(cell[f"ess_per_second_{which}"]) for which in ("min", "median"))
    return (
        f"| {cell['model']} | {sampler} | {rows} | {cell['ready_seconds']:.1f} "
        f"| {worst} | {least} | {median} | {seconds_to(_EFFECTIVE, cell):,.0f} |"
    )


def seconds_to(n_effective: int, cell: dict[str, Any]) -> float:
    """Set-up or compilation, tuning, and so many effective draws of the least well sampled one.

    Examples
    --------
    >>> seconds_to(400, {"ready_seconds": 3, "tuning_seconds": 1, "ess_per_second_min": 100})
    8.0
    """
    fixed: float = cell["ready_seconds"] + cell["tuning_seconds"]
    return fixed + n_effective / cell["ess_per_second_min"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _circumstances(cells: list[dict[str, Any]]) -> Iterator[str]:
    """Dates and versions; where they are several, models of the fewer are named."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        versions = cell["versions"]
        packages = ", ".join(f"{name} {versions[name]}" for name in ("pymc", "nutpie", "numba"))
        groups.setdefault(f"Python {cell['python']}, {packages}", []).append(cell)
    for number, each in enumerate(sorted(groups, key=lambda key: -len(groups[key]))):
        dates = sorted({cell["date"] for cell in groups[each]})
        span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        models = ", ".join(dict.fromkeys(cell["model"] for cell in groups[each]))
        yield f"{f'; {models}' if number else 'Measured'} {span} with {each}"
