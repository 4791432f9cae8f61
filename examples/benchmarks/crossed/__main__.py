"""A million ratings: AusterityMH, nutpie, crossed-effects and GPBoost.

Papaspiliopoulos, Stumpf-Fétizon and Zanella (2023) made crossed-effects for models of this kind;
GPBoost estimates. ``make bench-crossed`` makes the environment that both need. Seconds are of one
core's processor time. ``python -m examples.benchmarks.crossed [normal] [binary]``
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from examples.benchmarks.circumstances import circumstances  # noqa: E402
from examples.benchmarks.grouped_models import rated, ratings  # noqa: E402
from examples.benchmarks.peers import pymc_samplers  # noqa: E402
from examples.benchmarks.peers.cell import numbers  # noqa: E402
from examples.benchmarks.peers.problems import Problem  # noqa: E402
from examples.benchmarks.peers.run import Run  # noqa: E402

ROOT = Path(__file__).parents[3]
RESULTS, SITE = ROOT / "results" / "crossed", ROOT / "docs" / "_generated" / "crossed.md"
PYTHON = ROOT / ".venv-crossed" / "bin" / "python"
KINDS = ("normal", "binary")
NAMES = {
    "ours": "`AusterityMH()`",
    "crossed_effects": "crossed-effects",
    "gpboost": "GPBoost",
    "nutpie": "nutpie",
}
HEAD = """\
| ratings | sampler | draws | r_hat | ready, s | least ESS/s | median | s to 400 | means apart |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""


def problem(kind: str, **sizes: int) -> Problem:
    """Ratings and their model."""
    positive = ("of_users", "of_items", "sigma")
    return Problem(kind, rated(kind, **sizes), partial(ratings, kind), positive)


def run(its: Problem, name: str, seconds: float, python: Path) -> Run:
    """A thousand draws of this package or of nutpie, or what the other environment makes."""
    if name == "ours":
        return pymc_samplers.defaults(its, seconds, share=0.005)
    if name == "nutpie":
        from examples.benchmarks.peers import nutpie_sampler

        return nutpie_sampler.run(its, seconds, 1.0, "diag", tuned=1.0)
    with tempfile.TemporaryDirectory() as folder:
        rows, draws = Path(folder) / "rows.npz", Path(folder) / "draws.npz"
        np.savez(rows, **its.rows)
        command = [str(python), str(Path(__file__).with_name("theirs.py")), str(rows), str(draws)]
        command += [name, its.family, str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        with np.load(draws) as data:
            n_rows = float(its.n_rows)
            return Run(dict(data), compile_seconds=0.0, rows_per_evaluation=n_rows, **found)


def differences(cell: dict[str, Any], ours: dict[str, Any]) -> dict[str, float]:
    """Of the means, in posterior sds, and what is expected by chance.

    Examples
    --------
    >>> ours = {"mean": [0.0, 1.0], "sd": [1.0, 2.0], "ess_median": 100.0}
    >>> differences({"mean": [0.3, 1.8], "approximate": True}, ours)
    {'rms': 0.35, 'by_chance': 0.1, 'largest': 0.4}
    """
    gaps = (np.array(cell["mean"]) - ours["mean"]) / ours["sd"]
    sampled = [ours] if cell["approximate"] else [ours, cell]
    chance = sum(1.0 / each["ess_median"] for each in sampled)
    found = {"rms": np.sqrt((gaps**2).mean()), "by_chance": chance**0.5, "largest": max(abs(gaps))}
    return {key: round(float(value), 2) for key, value in found.items()}


def line(cell: dict[str, Any]) -> str:
    """One run."""
    name = f"| {cell['kind']} | {NAMES[cell['sampler']]} |"
    if "failed" in cell:
        return f"{name}{' - |' * 6} {cell['failed']} |\n"
    ready = cell["setup_seconds"] + cell["compile_seconds"]
    apart, least = cell["differences"], cell["ess_per_second_min"]
    shown = ["estimates", *"----", f"{cell['sampling_seconds']:,.0f}"]
    if least is not None:
        until = ready + cell["tuning_seconds"] + 400.0 / least
        shown = [f"{cell['n_draws']:,}", f"{cell['rhat_max']:.3f}", f"{ready:.1f}"]
        shown += [f"{least:.3g}", f"{cell['ess_per_second_median']:.3g}", f"{until:,.0f}"]
    if cell["sampler"] == "ours":
        shown.append("-")
    else:
        shown.append(f"{apart['rms']:.2f} ({apart['by_chance']:.2f}), {apart['largest']:.2f}")
    return f"{name} {' | '.join(shown)} |\n"


def table(results: Path) -> str:
    """All runs that are kept, and when they were made."""
    paths = [results / f"{kind}_{name}.json" for kind in KINDS for name in NAMES]
    cells = [json.loads(path.read_text()) for path in paths if path.exists()]
    dates = sorted({cell["date"] for cell in cells})
    return f"{HEAD}{''.join(map(line, cells))}\nMeasured {' to '.join(dates)}.\n"


def keep(cell: dict[str, Any]) -> None:
    """Write the numbers of a run, and the table of the page."""
    found = {key: cell[key] for key in cell if key not in ("mean", "sd")} | circumstances()
    path = RESULTS / f"{cell['kind']}_{cell['sampler']}.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    SITE.write_text(table(RESULTS))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, keep the numbers, and write the table of the page."""
    parser = argparse.ArgumentParser(prog="python -m examples.benchmarks.crossed")
    parser.add_argument("kinds", nargs="*", help=f"some of {', '.join(KINDS)}")
    parser.add_argument("--samplers", nargs="*", default=list(NAMES), help="ours is always run")
    parser.add_argument("--seconds", type=float, default=300.0, help="that a sampler may take")
    parser.add_argument("--python", type=Path, default=PYTHON, help="has the other programs")
    parser.add_argument("--quick", action="store_true", help="few rows; nothing is written")
    options = parser.parse_args(arguments)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    sizes = {"n_users": 200, "n_items": 40, "n_rows": 20_000} if options.quick else {}
    problems = {kind: problem(kind, **sizes) for kind in options.kinds or KINDS}
    ours: dict[str, dict[str, Any]] = {}
    print(HEAD, end="", flush=True)
    for name in [name for name in NAMES if name in ("ours", *options.samplers)]:
        for kind, its in problems.items():
            about = {"kind": kind, "sampler": name}
            try:
                cell = numbers(run(its, name, options.seconds, options.python), its.positive)
                cell |= about | {"differences": differences(cell, ours.setdefault(kind, cell))}
            except TimeoutError as error:
                cell = about | {"failed": str(error)}
            print(line(cell), end="", flush=True)
            if not options.quick:
                keep(cell)


if __name__ == "__main__":
    main()
