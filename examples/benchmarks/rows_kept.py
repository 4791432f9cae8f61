"""What a benchmark measured: one file for each part, and the table of all."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from examples.benchmarks.circumstances import circumstances
from examples.benchmarks.report import Measurement, markdown_table

RESULTS = Path(__file__).parents[2] / "results" / "rows"


def keep(
    name: str, title: str, measurements: Sequence[Measurement], results: Path | None = None
) -> None:
    """Write the numbers of a part."""
    results = results or RESULTS
    results.mkdir(parents=True, exist_ok=True)
    found = {
        "title": title,
        "measurements": [asdict(entry) for entry in measurements],
        "n_cores": len(os.sched_getaffinity(0)),
    }
    (results / f"{name}.json").write_text(json.dumps(found | circumstances(), indent=1) + "\n")


def kept(name: str, results: Path | None = None) -> dict[str, Any] | None:
    """The numbers of a part, None before it was measured."""
    path = (results or RESULTS) / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def page(names: Sequence[str], results: Path | None = None) -> str:
    """A table of all parts that were measured, in this order."""
    entries, measured = [], set()
    for found in filter(None, (kept(name, results) for name in names)):
        n_cores, when = found["n_cores"], f"{found['date']}, revision {found['revision']}"
        measured.add(f"{when}, {n_cores} core{'s' if n_cores > 1 else ''}")
        entries += [(found["title"], Measurement(**each)) for each in found["measurements"]]
    return f"{markdown_table(entries)}\n\nMeasured on {'; '.join(sorted(measured))}."
