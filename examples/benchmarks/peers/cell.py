"""One cell of the table, in a process of its own: ``python -m ...peers.cell``."""

import argparse
import json
import logging
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.benchmarks.circumstances import circumstances
from examples.benchmarks.memory import peak_megabytes
from examples.benchmarks.peers.extra import EXTRA
from examples.benchmarks.peers.problems import Problem, build
from examples.benchmarks.peers.run import Run, yardstick
from examples.benchmarks.peers.samplers import ON_GPU, sampler
from examples.benchmarks.peers.summary import flatten, moments
from pymc_austerity.model.row_likelihood import fingerprint


def main() -> None:
    """Run and write, failures too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("n_rows", type=int)
    parser.add_argument("sampler")
    parser.add_argument("seconds", type=float)
    parser.add_argument("file", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    cell: dict[str, Any] = {
        "model": options.model,
        "n_rows": options.n_rows,
        "sampler": options.sampler,
        "limit_seconds": options.seconds,
        "share": options.share,
    } | circumstances()
    started, speed = time.perf_counter(), yardstick()
    try:
        problem = build(options.model, options.n_rows)
        cell["data_mb"] = sum(values.nbytes for values in problem.rows.values()) / 1e6
        cell["rows"] = fingerprint(problem.rows.values())
        if options.sampler in EXTRA:
            cell |= EXTRA[options.sampler](problem, options.seconds)
        else:
            cell |= measure(problem, options.sampler, options.seconds, options.share)
    except Exception as error:  # noqa: BLE001 the table says what failed
        traceback.print_exc()
        cell["failed"] = f"{type(error).__name__}: {str(error)[:300]}"
    cell["peak_mb"] = max(peak_megabytes(), cell.get("facts", {}).get("peak_mb", 0.0))
    cell["yardstick_seconds"] = min(speed, yardstick())
    cell["process_seconds"] = time.perf_counter() - started
    options.file.write_text(json.dumps(cell, indent=1))


def measure(problem: Problem, name: str, seconds: float, share: float) -> dict[str, Any]:
    """Run a sampler, and its numbers."""
    found = numbers(sampler(name)(problem, seconds, share=share), problem.positive)
    return found | {"facts": found["facts"] | (gpu() if name in ON_GPU else {})}


def numbers(run: Run, positive: Sequence[str]) -> dict[str, Any]:
    """What a run took, and the moments of its draws."""
    found = moments(flatten(run.draws, positive))
    if run.approximate:
        rates = {"median": None, "min": None}
    else:
        rates = {key: found[f"ess_{key}"] / run.sampling_seconds for key in ("median", "min")}
    return found | {
        "n_parameters": len(found["mean"]),
        "setup_seconds": run.setup_seconds,
        "compile_seconds": run.compile_seconds,
        "tuning_seconds": run.tuning_seconds,
        "sampling_seconds": run.sampling_seconds,
        "ess_per_second_median": rates["median"],
        "ess_per_second_min": rates["min"],
        "rows_per_evaluation": run.rows_per_evaluation,
        "evaluations_per_draw": run.evaluations_per_draw,
        "tuning_share": run.tuning_share,
        "stopped_early": run.stopped_early,
        "approximate": run.approximate,
        "facts": run.facts,
    }


def gpu() -> dict[str, str]:
    """The graphics processor that JAX uses."""
    import jax

    return {"gpu": jax.devices()[0].device_kind}


if __name__ == "__main__":
    main()
