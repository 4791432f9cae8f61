"""Rows of a decision and effective draws of a row: ``AusterityMH(test="exact")`` and pymhss.

Both sample the same logistic and Poisson regressions, the latter with its rate log(1 + exp(eta)),
as in the experiments of Prado, Nemeth and Sherlock (2024); pymhss with its own settings, at its own
estimate of the mode. ``make bench-pymhss`` makes the environment that it needs.

Run ``python -m examples.benchmarks.pymhss --python PATH``, where PATH is a Python that has pymhss.
"""

import argparse
import json
import logging
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.special import expit

from pymc_austerity import AusterityMH

SITE = Path(__file__).parents[3] / "docs" / "_generated" / "pymhss.md"
THEIRS = Path(__file__).with_name("theirs.py")
SIZES = ((10_000, 10), (100_000, 10), (100_000, 30))
MODELS = ("logistic", "poisson")
N_DRAWS = 20_000


class Counted(NamedTuple):
    """What a run took."""

    rows: float
    accepted: float
    seconds: float
    ess: float

    def cells(self, n_draws: int) -> list[str]:
        """Rows of a decision, acceptance, effective draws of 1,000 rows and of a second."""
        of_rows = 1e3 * self.ess / max(self.rows * n_draws, 1.0)
        return [
            f"{self.rows:,.4g}",
            f"{self.accepted:.2f}",
            f"{of_rows:,.3g}",
            f"{self.ess / self.seconds:,.0f}",
        ]


def simulated(model: str, n_rows: int, n_columns: int) -> tuple[NDArray, NDArray]:
    """An intercept and standard normal columns, as pymhss simulates them."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n_rows, n_columns))
    x[:, 0] = 1.0
    eta = x @ (rng.standard_normal(n_columns) / np.sqrt(n_columns))
    if model == "logistic":
        return x, rng.binomial(1, expit(eta))
    return x, rng.poisson(np.logaddexp(0.0, eta))


def least_ess(draws: NDArray) -> float:
    """Effective draws of the least well sampled coefficient; draws of shape (n, d)."""
    return float(az.ess({"beta": draws[None]})["beta"].min())


def ours(model: str, x: NDArray, y: NDArray, n_draws: int) -> Counted:
    """Exact decisions with the default proposals."""
    with pm.Model():
        beta = pm.Normal("beta", 0.0, 100.0, shape=x.shape[1])
        if model == "logistic":
            pm.Bernoulli("y", logit_p=x @ beta, observed=y)
        else:
            pm.Poisson("y", pt.softplus(x @ beta), observed=y)
        step = AusterityMH(test="exact")
        started = time.perf_counter()
        idata = pm.sample(
            step=step, draws=n_draws, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
        seconds = time.perf_counter() - started
    stats = idata.sample_stats
    rows, accepted = float(stats["n_rows_used"].mean()), float(stats["accepted"].mean())
    return Counted(rows, accepted, seconds, least_ess(idata.posterior["beta"].values[0]))


def theirs(python: str, model: str, x: NDArray, y: NDArray, n_draws: int, order: int) -> Counted:
    """The scalable subsampling of pymhss with control variates of an order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, x=x, y=y)
        command = [python, str(THEIRS), str(path), model, str(n_draws), f"mhss-{order}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    ess = least_ess(np.array(found["draws"]))
    return Counted(found["rows"], found["accepted"], found["seconds"], ess)


def main(arguments: Sequence[str] | None = None) -> None:
    """Sample with both, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="a Python that has pymhss")
    parser.add_argument("--quick", action="store_true", help="short; the site stays as it is")
    options = parser.parse_args(arguments)
    logging.getLogger("pymc").setLevel(logging.WARNING)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        os.environ.setdefault(name, "1")
    n_draws, sizes = (1_000, SIZES[:1]) if options.quick else (N_DRAWS, SIZES)
    columns = ("rows a decision", "accepted", "ESS of 1,000 rows", "ESS/s")
    head = ["model", "rows", "coefficients", "sampler", *columns]
    lines = [f"| {' | '.join(head)} |", "| --- " * 4 + "| ---: " * len(columns) + "|"]
    for model in MODELS:
        for n_rows, n_columns in sizes:
            x, y = simulated(model, n_rows, n_columns)
            runs = {"AusterityMH, exact": ours(model, x, y, n_draws)}
            for order in (1, 2):
                found = theirs(options.python, model, x, y, n_draws, order)
                runs[f"pymhss, order {order}"] = found
            for name, counted in runs.items():
                cells = [model, f"{n_rows:,}", str(n_columns), name, *counted.cells(n_draws)]
                lines.append(f"| {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    if not options.quick:
        SITE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
