"""Run the cells that are not there yet, one process each, and write the table."""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from examples.benchmarks.circumstances import circumstances
from examples.benchmarks.peers import picture, tables
from examples.benchmarks.peers.problems import FAMILIES, default_sizes
from examples.benchmarks.peers.samplers import SAMPLERS

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results" / "peers"
SITE = ROOT / "docs" / "_generated"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
REFERENCE_POINTS = {"logistic-100": 4_000, "kdd": 8_000, "mnist": 40_000}
REFERENCE_POINTS |= {"hierarchical": 20_000, "rare": 60_000, "saturation": 40_000}
CLAIMS = {"gradient": ("logistic-20",), "audit-0.05": ("kdd",), "audit-0.01": ("kdd",)}
CLAIMS |= {f"pymhss_{name}": ("logistic-20",) for name in ("mhss", "smh", "tuna", "rwm")}
"""Cells that are for some models alone. Of the models of pymhss, which has no priors, this page has
the logistic regression."""
GIGABYTES = 16
"""Memory that a process may take."""
LARGEST_FOR_OURS = ("logistic-20", 10_000_000)


@dataclass(frozen=True)
class Cell:
    """A sampler on a model, or one of the measurements of `extra`."""

    model: str
    n_rows: int
    sampler: str

    @property
    def file_name(self) -> str:
        """Where its numbers are."""
        return f"{self.model}_{self.n_rows}_{self.sampler}.json"


def main() -> None:
    """Command line."""
    options = arguments()
    options.results.mkdir(parents=True, exist_ok=True)
    for cell in cells(options):
        file = options.results / cell.file_name
        if file.exists() and not options.again:
            print(f"{cell.file_name} is there already", flush=True)
            continue
        run(cell, file, options)
    if not options.quick:
        pages = SITE if options.results == RESULTS else options.results
        tables.write(options.results, pages / "peers.md")
        picture.write(options.results, pages / "peers.png")


def arguments() -> argparse.Namespace:
    """Options."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.benchmarks.peers", description=__doc__
    )
    parser.add_argument("--models", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--sizes", nargs="*", type=int, help="numbers of rows; default by model")
    names = list(dict.fromkeys(["reference", *SAMPLERS, *CLAIMS]))
    parser.add_argument("--samplers", nargs="*", default=names, choices=names)
    parser.add_argument("--minutes", type=float, default=3.0, help="tuning and sampling of a cell")
    parser.add_argument("--core", type=int, default=0, help="core that the processes are bound to")
    parser.add_argument("--again", action="store_true", help="run cells that are there already")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--quick", action="store_true", help="small and short, into a folder apart")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.quick:
        options.results = Path(tempfile.gettempdir()) / "peers-quick"
        options.minutes = min(options.minutes, 0.5)
        options.sizes = options.sizes or [10_000]
    return options


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """What to run, in order."""
    if options.table:
        return
    for model in options.models:
        sizes = default_sizes(model)
        if len(sizes) > 1 or options.quick:
            sizes = tuple(options.sizes or sizes)
        for n_rows in sizes:
            for sampler in options.samplers:
                if model in CLAIMS.get(sampler, FAMILIES):
                    yield Cell(model, n_rows, sampler)
        if not options.sizes and model == LARGEST_FOR_OURS[0]:
            for sampler in ("reference", "ours"):
                if sampler in options.samplers:
                    yield Cell(*LARGEST_FOR_OURS, sampler)


def run(cell: Cell, file: Path, options: argparse.Namespace) -> None:
    """Run one cell with empty caches of compiled code."""
    caches = Path(tempfile.mkdtemp(prefix="peers-"))
    amount = 60.0 * options.minutes
    if cell.sampler == "reference":
        amount = REFERENCE_POINTS.get(cell.model, 6_000) // (10 if options.quick else 1)
        amount = min(amount, 1_000_000_000 // cell.n_rows) if cell.n_rows >= 1_000_000 else amount
    command = [sys.executable, "-m", "examples.benchmarks.peers.cell"]
    command += [cell.model, str(cell.n_rows), cell.sampler, str(amount), str(file)]
    command += ["--share", "0.1" if options.quick else "1.0"]
    if shutil.which("taskset"):
        command = ["taskset", "--cpu-list", str(options.core), *command]
    environment = os.environ | ONE_THREAD
    environment["PYTENSOR_FLAGS"] = f"base_compiledir={caches}"
    environment["NUMBA_CACHE_DIR"] = str(caches)
    print(f"{cell.file_name} ...", flush=True)
    file.unlink(missing_ok=True)
    limit = 3_600 if cell.sampler == "reference" else 4 * 60 * options.minutes + 600
    reason = f"ended by the operating system, out of {GIGABYTES} GB of memory perhaps"
    try:
        subprocess.run(command, cwd=ROOT, env=environment, timeout=limit, preexec_fn=limit_memory)
    except subprocess.TimeoutExpired:
        reason = f"did not end within {limit:,.0f} s"
    finally:
        shutil.rmtree(caches, ignore_errors=True)
    if not file.exists():
        note_failure(cell, file, reason, amount)


def limit_memory() -> None:
    """What needs more than a common machine has is refused it, before the machine suffers."""
    resource.setrlimit(resource.RLIMIT_DATA, (GIGABYTES * 10**9, GIGABYTES * 10**9))


def note_failure(cell: Cell, file: Path, reason: str, amount: float) -> None:
    """Write what the process of a cell could not write any more."""
    print(f"{cell.file_name}: {reason}", flush=True)
    found = {
        "model": cell.model,
        "n_rows": cell.n_rows,
        "sampler": cell.sampler,
        "limit_seconds": amount,
        "failed": reason,
        "peak_mb": None,
    }
    file.write_text(json.dumps(found | circumstances(), indent=1))


if __name__ == "__main__":
    main()
