"""Seconds until ``AusterityMH()`` is constructed, beside nutpie's compilation of the same model."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from examples.benchmarks.costly_models import COSTLY
from examples.benchmarks.peers.problems import Problem, build, data_file, hierarchical
from examples.benchmarks.report import Measurement

TITLE = "set-up of AusterityMH()"
ROOT = Path(__file__).parents[2]
GROUPS = "hierarchical, 250 groups"
SIZES = {
    "logistic-20": 100_000,
    "logistic-100": 100_000,
    "poisson": 100_000,
    "student_t": 100_000,
    "hierarchical": 200_000,
    "kdd": 494_021,
    "mnist": 12_214,
    GROUPS: 200_000,
}
"""Rows of every posterior of the peers page, and of one with many groups."""

COLD_BAR = 1.0
WARM_BARS = {"logistic-20": 1.5}
COLD_SECONDS_BARS = {GROUPS: 15.0, "ordinal": 20.0, "mixture": 20.0, "five responses": 20.0}
FILES = ("kddcup99_10pct.npz", "mnist_7v9.npz")


def measure(percent: int) -> list[Measurement]:
    """Seconds after the imports, each in a fresh process.

    The first process of a sampler starts with empty caches of compiled code, the second one has the
    caches that the first one left behind, and other data of the same model.

    Parameters
    ----------
    percent : int
        Share of the rows in `SIZES`; bars are meant for all of them.

    Raises
    ------
    SystemExit
        nutpie or a file of data is missing.
    """
    if find_spec("nutpie") is None:
        raise SystemExit("nutpie is not installed: install the extra 'peers'.")
    for name in FILES:
        data_file(name)
    sizes = {name: n_rows * percent // 100 for name, n_rows in SIZES.items()}
    found = [entry for name, n_rows in sizes.items() for entry in of_posterior(name, n_rows)]
    for name, (_, n_rows) in COSTLY.items():
        found += own_seconds(name, n_rows * percent // 100)[0]
    return found


def of_posterior(name: str, n_rows: int) -> list[Measurement]:
    """Seconds of set-up for one posterior, and their ratio to nutpie's."""
    own, cold, warm = own_seconds(name, n_rows)
    what = f"{name}, {n_rows:,} rows"
    theirs = seconds_cold_and_warm("nutpie", name, n_rows)
    return [
        *own,
        Measurement(f"{what}: nutpie, empty caches", theirs[0], "s"),
        Measurement(f"{what}: nutpie, warm, other data", theirs[1], "s"),
        Measurement(f"{what}: to nutpie, empty caches", cold / theirs[0], bar=COLD_BAR),
        Measurement(f"{what}: to nutpie, warm", warm / theirs[1]),
    ]


def own_seconds(name: str, n_rows: int) -> tuple[list[Measurement], float, float]:
    """Seconds of set-up for one posterior, as measurements and as numbers."""
    cold, warm = seconds_cold_and_warm("austerity", name, n_rows)
    what = f"{name}, {n_rows:,} rows"
    found = [
        Measurement(f"{what}: empty caches", cold, "s", bar=COLD_SECONDS_BARS.get(name)),
        Measurement(f"{what}: warm, other data", warm, "s", bar=WARM_BARS.get(name)),
    ]
    return found, cold, warm


def seconds_cold_and_warm(sampler: str, name: str, n_rows: int) -> tuple[float, float]:
    """Seconds in a process with empty caches, and in a second one with the caches of the first."""
    with tempfile.TemporaryDirectory(prefix="setup-") as caches:
        environment = os.environ | {
            "PYTENSOR_FLAGS": f"base_compiledir={caches}/pytensor",
            "NUMBA_CACHE_DIR": f"{caches}/numba",
        }
        first, second = (
            subprocess.run(
                [sys.executable, "-m", __name__, sampler, name, str(n_rows), str(seed)],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            for seed in (0, 1)
        )
    return json.loads(first.stdout.splitlines()[-1]), json.loads(second.stdout.splitlines()[-1])


# ---------------------------------------------------------------------- in a process of its own


def posterior(name: str, n_rows: int, seed: int) -> Problem:
    """Rows and model; seeds other than 0 give other data of the same shape and model.

    Other data are a bootstrap sample of the rows: real data have no seed. Of grouped rows, the
    first ones keep their places, so that no group is lost.
    """
    if name == GROUPS:
        problem = hierarchical(n_rows, n_groups=250)
    else:
        problem = COSTLY[name][0](n_rows) if name in COSTLY else build(name, n_rows)
    if seed == 0:
        return problem
    rows = np.random.default_rng(seed).integers(problem.n_rows, size=problem.n_rows)
    labels = [problem.rows[key] for key in ("group", "user", "item") if key in problem.rows]
    if labels:
        firsts = np.concatenate([np.unique(own, return_index=True)[1] for own in labels])
        rows[: firsts.size] = firsts
    return replace(problem, rows={key: values[rows] for key, values in problem.rows.items()})


def importer(sampler: str) -> Callable[[Any], Any]:
    """What is timed for a sampler, everything imported.

    PyTensor imports its backend for C at the first compilation of a process.
    """
    importlib.import_module("pytensor.link.c.exceptions")
    if sampler == "nutpie":
        import nutpie

        return nutpie.compile_pymc_model
    from pymc_austerity import AusterityMH

    return lambda model: AusterityMH(model=model)


def seconds_of_setup(sampler: str, name: str, n_rows: int, seed: int) -> float:
    """Seconds of construction or compilation; the model is there already."""
    problem = posterior(name, n_rows, seed)
    set_up = importer(sampler)
    with problem.model(problem.rows) as model:
        started = time.perf_counter()
        set_up(model)
        return time.perf_counter() - started


if __name__ == "__main__":
    name_of_sampler, name_of_posterior, *numbers = sys.argv[1:]
    print(json.dumps(seconds_of_setup(name_of_sampler, name_of_posterior, *map(int, numbers))))
