"""The four samplers of pymhss, in the environment that it needs (``make bench-pymhss``)."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.run import Run

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv-pymhss" / "bin" / "python"
THEIRS = ROOT / "examples" / "benchmarks" / "pymhss" / "theirs.py"
DRAWS = 50_000


def mhss(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Scalable subsampling, control variates of second order (Prado, Nemeth and Sherlock, 2024)."""
    return run(problem, "mhss-2", seconds, share)


def smh(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Scalable Metropolis-Hastings of second order (Cornish et al., 2019)."""
    return run(problem, "smh", seconds, share)


def tuna(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """TunaMH, without control variates (Zhang, Cooper and De Sa, 2020)."""
    return run(problem, "tuna", seconds, share)


def rwm(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """A random walk that reads all rows."""
    return run(problem, "rwm", seconds, share)


def run(problem: Problem, method: str, seconds: float, share: float) -> Run:
    """Draws from the other environment."""
    if not PYTHON.exists():
        raise FileNotFoundError("no environment with pymhss: make one with make bench-peers")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, x=problem.rows["x"], y=problem.rows["y"])
        command = [str(PYTHON), str(THEIRS), str(path), problem.family, str(int(share * DRAWS))]
        try:
            done = subprocess.run(
                [*command, method],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                timeout=4 * seconds,
            )
        except subprocess.TimeoutExpired as error:
            message = f"did not make {share * DRAWS:,.0f} draws in {4 * seconds:.0f} s"
            raise TimeoutError(message) from error
    found = json.loads(done.stdout.splitlines()[-1])
    return Run(
        draws={"beta": np.array(found["draws"])},
        setup_seconds=found["setup_seconds"],
        compile_seconds=0.0,
        tuning_seconds=found["tuning_seconds"],
        sampling_seconds=found["sampling_seconds"],
        rows_per_evaluation=found["rows"],
        facts={"acceptance": found["accepted"], "peak_mb": found["peak_mb"]},
    )
