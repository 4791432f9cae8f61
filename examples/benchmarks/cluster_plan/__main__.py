"""A plan for 10,000,000,000 rows on 100 workers: ``python -m examples.benchmarks.cluster_plan``.

Passes of one set-up are measured on one core of this machine; what a cluster makes of them is
simulated. The measurements are kept in ``results/cluster_plan.json`` and used again, unless
``--measure`` asks for new ones. The page of the site is written from them.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from examples.benchmarks.circumstances import circumstances
from examples.benchmarks.cluster_plan.measured import BYTES_OF_ROW, Measured, measure
from examples.benchmarks.cluster_plan.simulated import Cluster, Work, simulated
from examples.benchmarks.rows_kept import kept

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "results" / "cluster_plan.json"
SITE = ROOT / "docs" / "_generated" / "cluster_plan.md"

N_ROWS, N_MEASURED, N_CHECKED = 10_000_000_000, 4_000_000, 50_000_000
WORKERS = (10, 30, 100, 300, 1_000)
STORAGES = (2e9, 10e9, 50e9)
HOURS_BETWEEN_LOSSES = (1_000.0, 100.0, 10.0, 1.0)
HOURS_OF_THE_HEAD = (24.0, 4.0, 1.0)


def main() -> None:
    """Measure if need be, simulate, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m examples.benchmarks.cluster_plan")
    parser.add_argument("--measure", action="store_true", help="measure again")
    parser.add_argument("--rows", type=int, default=N_MEASURED, help="that are measured")
    options = parser.parse_args()
    if options.measure or not KEPT.exists():
        with tempfile.TemporaryDirectory(prefix="plan-") as folder:
            found = measure(options.rows, Path(folder), [N_CHECKED, N_ROWS])
        KEPT.write_text(json.dumps(found.as_dict() | circumstances(), indent=1) + "\n")
    parts = json.loads(KEPT.read_text())
    about = {name: parts.pop(name) for name in circumstances()}
    SITE.write_text(page(Measured.of_dict(parts), about))
    print(SITE.read_text())


def works_of(found: Measured, n_rows: int) -> list[Work]:
    """The passes over more rows of the same kind."""
    rows_of_piece = _rows_of_piece(found)
    n_pieces, pool_bytes = -(-n_rows // rows_of_piece), found.pools[str(n_rows)][1]
    works = []
    for each in found.passes:
        # rows that are kept: of the sample as many as before, of the pool those that are planned
        own = pool_bytes if each.name == "rows" else each.row_bytes
        of_rows = each.row_bytes / each.result_bytes
        times = n_pieces / each.n_pieces * (1.0 - of_rows) + own / each.result_bytes
        work = Work(
            n_pieces=n_pieces,
            read_bytes=rows_of_piece * BYTES_OF_ROW,
            evaluation=(each.evaluation + each.reading) / each.n_pieces,
            result_bytes=times * each.result_bytes / n_pieces,
            folding=times * each.folding / n_pieces,
            sent_bytes=each.sent_bytes + each.sent_by_piece * (n_pieces - each.n_pieces),
        )
        works.append(work)
    return works


def minutes(found: Measured, cluster: Cluster, n_rows: int = N_ROWS) -> float:
    """Of a set-up."""
    rng = np.random.default_rng(1)
    passes = sum(simulated(work, cluster, rng).seconds for work in works_of(found, n_rows))
    return (found.elsewhere + passes) / 60.0


def page(found: Measured, about: dict[str, Any]) -> str:
    """All tables."""
    tables = (part(found) for part in (_sums, _check, _by_workers, _by_losses, _of_the_head))
    return "\n\n".join([_measured(found, about), *tables]) + "\n"


def _measured(found: Measured, about: dict[str, Any]) -> str:
    header = (
        "pass", "evaluation of a row, µs", "taking in a piece, µs", "result of a piece, kB",
        "functions, MB",
    )  # fmt: skip
    rows = []
    for each, work in zip(found.passes, works_of(found, N_ROWS), strict=True):
        per_row = 1e6 * (each.evaluation + each.reading) / found.n_rows
        result, sent = work.result_bytes / 1e3, work.sent_bytes / 1e6
        taking = f"{1e6 * work.folding:,.0f}"
        rows.append((each.name, f"{per_row:.2f}", taking, f"{result:,.2f}", f"{sent:.1f}"))
    return (
        f"Measured on {about['date']}, revision {about['revision']}, with {found.n_rows:,} rows of "
        f"{BYTES_OF_ROW} bytes, in pieces of {_rows_of_piece(found):,}: seconds of one core, with "
        f"files in the system's cache. Results and functions are those for {N_ROWS:,} rows.\n\n"
        + _table(header, rows)
    )


def _sums(found: Measured) -> str:
    works = works_of(found, N_ROWS)
    n_pieces = works[0].n_pieces
    by_group = n_pieces * found.n_groups
    pool_rows, pool_bytes = found.pools[str(N_ROWS)]
    rows = [
        ("passes", f"{len(works)}"),
        ("read, TB", f"{len(works) * N_ROWS * BYTES_OF_ROW / 1e12:.1f}"),
        ("evaluation, core hours", f"{_core_hours(works):.1f}"),
        ("results to the process that sets up, GB", f"{_of_all(works, 'result_bytes'):.2f}"),
        ("taking in results, minutes", f"{_of_all(works, 'folding') * 1e9 / 60:.1f}"),
        ("between passes, seconds", f"{found.elsewhere:.0f}"),
        ("groups of rows", f"{found.n_groups:,}"),
        ("rows of each group in each piece, in the memory of that process, MB",
         f"{4 * by_group / 1e6:,.0f}"),
        ("rows in the pool", f"{pool_rows:,}"),
        ("the pool, MB", f"{pool_bytes / 1e6:.1f}"),
    ]  # fmt: skip
    return f"What {N_ROWS:,} rows come to:\n\n" + _table(("", ""), rows)


def _check(found: Measured) -> str:
    """What the same simulation says of the benchmark of rows, which runs on two threads."""
    whole = kept("npy")
    assert whole is not None
    seconds = {each["what"]: each["value"] for each in whole["measurements"]}
    storage = N_CHECKED * BYTES_OF_ROW / seconds["plain read"]
    here = Cluster(2, storage, storage, 1e12, 0.0, 0.0, 1.0, 0.0, 1e9, 0.0)
    expected = 60.0 * minutes(found, here, N_CHECKED)
    took, n_passes = seconds["set-up"], seconds["passes over all rows"]
    return (
        f"For two workers that read as fast as `make bench-rows` does, {N_CHECKED:,} rows are "
        f"expected to take {expected:.0f} s. That benchmark measured {took:.0f} s on two threads, "
        f"{took / expected:.1f} times as long, in {n_passes:.0f} passes: minutes below that are "
        "limited by computing may be too few by that factor."
    )


def _by_workers(found: Measured) -> str:
    def cell(n_workers: int, storage: float) -> str:
        return f"{minutes(found, Cluster(n_workers=n_workers, storage=storage)):,.0f}"

    header = ("workers", *(f"storage of {storage / 1e9:.0f} GB/s" for storage in STORAGES))
    rows = [(f"{n:,}", *(cell(n, storage) for storage in STORAGES)) for n in WORKERS]
    reading = [len(found.passes) * N_ROWS * BYTES_OF_ROW / storage / 60.0 for storage in STORAGES]
    rows.append(("reading alone", *(f"{each:,.0f}" for each in reading)))
    return "Minutes of set-up:\n\n" + _table(header, rows)


def _by_losses(found: Measured) -> str:
    rows = []
    for hours in HOURS_BETWEEN_LOSSES:
        cluster = Cluster(hours_between_losses=hours)
        rng = np.random.default_rng(1)
        outcomes = [simulated(work, cluster, rng) for work in works_of(found, N_ROWS)]
        rows.append(
            (
                f"{hours:,.0f}",
                f"{(found.elsewhere + sum(each.seconds for each in outcomes)) / 60:,.1f}",
                f"{sum(each.n_lost for each in outcomes):,}",
                f"{max(each.most_losses for each in outcomes)}",
            )
        )
    header = ("hours between losses of a worker", "minutes", "tasks lost", "most often the same")
    slow = minutes(found, Cluster(slow_share=0.05))
    return (
        f"{Cluster().n_workers} workers, one of which is lost now and then:\n\n"
        + _table(header, rows)
        + f"\n\nWith ten times as many stragglers it takes {slow:,.1f} minutes."
    )


def _of_the_head(found: Measured) -> str:
    """Expected minutes where the process that sets up is killed at random times."""
    needed = minutes(found, Cluster(storage=STORAGES[0])) / 60.0
    lost = needed / len(found.passes) / 2.0 + found.elsewhere / 3_600.0
    rows = []
    for hours in HOURS_OF_THE_HEAD:
        anew = hours * np.expm1(needed / hours)
        goes_on = needed * (1.0 + lost / hours)
        rows.append((f"{hours:.0f}", f"{60 * anew:,.0f}", f"{60 * goes_on:,.0f}"))
    header = ("hours between kills", "minutes, beginning anew", "minutes, going on")
    return (
        f"With storage of {STORAGES[0] / 1e9:.0f} GB/s, where the process that sets up is killed, "
        "too, and started again with ``setup_folder=``:\n\n" + _table(header, rows)
    )


def _rows_of_piece(found: Measured) -> int:
    pieces = -(-found.n_rows // found.passes[0].n_pieces)
    return 2 ** round(np.log2(pieces))


def _core_hours(works: Sequence[Work]) -> float:
    return sum(work.n_pieces * work.evaluation for work in works) / 3_600.0


def _of_all(works: Sequence[Work], name: str) -> float:
    """Of all pieces of all passes, in units of 1e9."""
    return float(sum(work.n_pieces * getattr(work, name) for work in works)) / 1e9


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    marks = ["---", *["---:"] * (len(header) - 1)]
    lines = [" | ".join(each) for each in (header, marks, *rows)]
    return "\n".join(f"| {line} |" for line in lines)


if __name__ == "__main__":
    main()
