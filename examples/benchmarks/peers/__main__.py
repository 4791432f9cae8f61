"""Run the cells that are not there yet, one process each, and write the table."""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from examples.benchmarks.circumstances import circumstances
from examples.benchmarks.peers import picture, tables
from examples.benchmarks.peers.problems import FAMILIES, default_sizes
from examples.benchmarks.peers.samplers import ON_GPU, SAMPLERS

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
    waiting = {False: deque[Cell](), True: deque[Cell]()}
    for cell in cells(options):
        if (options.results / cell.file_name).exists() and not options.again:
            print(f"{cell.file_name} is there already", flush=True)
        else:
            waiting[cell.sampler in ON_GPU].append(cell)

    def run_all(core: int | None) -> None:
        """One after the other on a core; those for a graphics processor on any core."""
        line = waiting[core is None]
        while line:
            run(line.popleft(), core, options)

    with ThreadPoolExecutor(len(options.cores) + 1) as threads:
        list(threads.map(run_all, [*options.cores, None]))
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
    default = [name for name in names if name not in ON_GPU]
    parser.add_argument("--samplers", nargs="*", default=default, choices=names)
    parser.add_argument("--gpu", action="store_true", help="also those on a graphics processor")
    parser.add_argument("--minutes", type=float, default=3.0, help="tuning and sampling of a cell")
    parser.add_argument(
        "--cores", nargs="+", type=int, default=[0], help="cores that run one cell each at a time"
    )
    parser.add_argument("--again", action="store_true", help="run cells that are there already")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--quick", action="store_true", help="small and short, into a folder apart")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.samplers += ON_GPU if options.gpu else ()
    if options.quick:
        options.results = Path(tempfile.gettempdir()) / "peers-quick"
        options.minutes = min(options.minutes, 0.5)
        options.sizes = options.sizes or [10_000]
    return options


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """What to run, in order: small and large data by turns, which cores that share memory like."""
    if options.table:
        return
    for sampler in options.samplers:
        for model in options.models:
            sizes = default_sizes(model)
            if len(sizes) > 1 or options.quick:
                sizes = tuple(options.sizes or sizes)
            for n_rows in sizes:
                if model in CLAIMS.get(sampler, FAMILIES):
                    yield Cell(model, n_rows, sampler)
        of_all = sampler in ("reference", "ours") and LARGEST_FOR_OURS[0] in options.models
        if of_all and not options.sizes:
            yield Cell(*LARGEST_FOR_OURS, sampler)


def run(cell: Cell, core: int | None, options: argparse.Namespace) -> None:
    """Run one cell with empty caches of compiled code."""
    file = options.results / cell.file_name
    caches = Path(tempfile.mkdtemp(prefix="peers-"))
    amount = 60.0 * options.minutes
    if cell.sampler == "reference":
        amount = REFERENCE_POINTS.get(cell.model, 6_000) // (10 if options.quick else 1)
        amount = min(amount, 1_000_000_000 // cell.n_rows) if cell.n_rows >= 1_000_000 else amount
    command = [sys.executable, "-m", "examples.benchmarks.peers.cell"]
    command += [cell.model, str(cell.n_rows), cell.sampler, str(amount), str(file)]
    command += ["--share", "0.1" if options.quick else "1.0"]
    environment, limits = os.environ | ONE_THREAD, limit_memory
    if core is None:
        environment, limits = os.environ | {"JAX_PLATFORMS": "cuda"}, None
    elif shutil.which("taskset"):
        command = ["taskset", "--cpu-list", str(core), *command]
    environment["PYTENSOR_FLAGS"] = f"base_compiledir={caches}"
    environment["NUMBA_CACHE_DIR"] = str(caches)
    print(f"{cell.file_name} ...", flush=True)
    file.unlink(missing_ok=True)
    limit = 3_600 if cell.sampler == "reference" else 4 * 60 * options.minutes + 600
    reason = f"ended by the operating system, out of {GIGABYTES} GB of memory perhaps"
    try:
        subprocess.run(command, cwd=ROOT, env=environment, timeout=limit, preexec_fn=limits)
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
