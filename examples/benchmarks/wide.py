"""Models of hundreds of dimensions without groups: ``python -m examples.benchmarks.wide``.

Each case is measured in a process of its own and kept in ``results/wide``; what is there already is
not measured again. Names measure these again.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse  # noqa: E402
import logging  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import NamedTuple  # noqa: E402

import arviz as az  # noqa: E402
import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402
import pytensor  # noqa: E402
from pytensor.sparse import as_sparse_variable, structured_dot  # noqa: E402
from scipy import sparse  # noqa: E402

from examples.benchmarks.report import Measurement  # noqa: E402
from examples.benchmarks.rows_kept import keep, kept, page  # noqa: E402
from pymc_austerity import AusterityMH  # noqa: E402

ROOT = Path(__file__).parents[2]
RESULTS, SITE = ROOT / "results" / "wide", ROOT / "docs" / "_generated" / "wide.md"
CHAINS, WANTED = 2, 400
N_EFFECTS, SD, SD_OF_MANY = 10, 0.5, 0.2


class Case(NamedTuple):
    """A regression, and its bars.

    With a dense design, few coefficients are not zero. With a sparse one, rows store `per_row`
    entries in random columns. With classes, each column has a coefficient for each of them.
    """

    n_rows: int
    dimension: int
    dtype: str
    setup_seconds: float
    milliseconds: float
    draws: int = 1_000
    tune: int = 64
    per_row: int = 0
    family: str = "logistic"
    n_classes: int = 1

    @property
    def title(self) -> str:
        """What it is."""
        kind = f"{self.family}, {self.per_row} entries a row" if self.per_row else self.family
        kind += f" of {self.n_classes} classes" if self.n_classes > 1 else ""
        return f"{kind}, D = {self.dimension:,}, N = {self.n_rows:,}, {self.dtype}"

    @property
    def n_bytes(self) -> int:
        """Of the covariates; numbers of columns take half of what their values take."""
        size = np.dtype(self.dtype).itemsize
        return self.n_rows * (self.per_row * (size + 4) or self.n_columns * size)

    @property
    def n_columns(self) -> int:
        """Of the covariates."""
        return self.dimension // self.n_classes


CASES = {
    "logistic-301": Case(100_000, 301, "float64", 20.0, 10.0),
    "logistic-1000": Case(100_000, 1_000, "float64", 60.0, 33.0),
    "logistic-500-tall": Case(1_500_000, 500, "float32", 120.0, 150.0, draws=250),
    "sparse-logistic": Case(1_000_000, 10_000, "float64", 120.0, 1_200.0, 500, 2, 20),
    "sparse-poisson": Case(1_000_000, 10_000, "float64", 120.0, 1_200.0, 500, 2, 20, "Poisson"),
    "softmax": Case(100_000, 1_000, "float64", 200.0, 500.0, 1_000, 200, 0, "softmax", 50),
}


def sparse_regression(case: Case) -> pm.Model:
    """Standard normal values in random columns, all of which have an effect."""
    rng, shape = np.random.default_rng(1), (case.n_rows, case.per_row)
    columns = rng.integers(0, case.dimension, size=shape, dtype=np.int32)
    starts = np.arange(0, columns.size + 1, case.per_row)
    stored = rng.standard_normal(columns.size), columns.ravel(), starts
    x = sparse.csr_matrix(stored, (case.n_rows, case.dimension))
    x.sum_duplicates()
    eta = x @ rng.normal(0.0, SD_OF_MANY, size=case.dimension) - 1.0
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=case.dimension)
        predictor = structured_dot(as_sparse_variable(x), beta[:, None])[:, 0] - 1.0
        if case.family == "Poisson":
            pm.Poisson("y", pm.math.exp(predictor), observed=rng.poisson(np.exp(eta)))
        else:
            observed = rng.random(case.n_rows) < 1.0 / (1.0 + np.exp(-eta))
            pm.Bernoulli("y", logit_p=predictor, observed=observed)
    return model


def softmax_regression(case: Case) -> pm.Model:
    """An intercept and standard normal covariates, all of which have an effect on each class."""
    rng, shape = np.random.default_rng(1), (case.n_columns, case.n_classes)
    x = rng.standard_normal((case.n_rows, case.n_columns))
    x[:, 0] = 1.0
    eta = x @ rng.normal(0.0, SD, size=shape)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=shape)
        y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
        pm.Categorical("y", logit_p=pm.math.dot(x, beta), observed=y)
    return model


def regression(case: Case) -> pm.Model:
    """Standard normal covariates."""
    if case.per_row:
        return sparse_regression(case)
    if case.n_classes > 1:
        return softmax_regression(case)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((case.n_rows, case.dimension), dtype=case.dtype)
    effects = rng.normal(0.0, SD, size=N_EFFECTS).astype(case.dtype)
    y = rng.random(case.n_rows) < 1.0 / (1.0 + np.exp(-x[:, :N_EFFECTS] @ effects))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=case.dimension)
        pm.Bernoulli("y", logit_p=pm.math.dot(x, beta), observed=y)
    return model


def measure(case: Case) -> list[Measurement]:
    """Processor time and memory of this process."""
    with pytensor.config.change_flags(floatX=case.dtype):
        model = regression(case)
        started = time.process_time()
        with model:
            step = AusterityMH()
        setup = time.process_time() - started
        quiet = {"progressbar": False, "compute_convergence_checks": False}
        with model:
            idata = pm.sample(
                case.draws,
                tune=case.tune,
                chains=CHAINS,
                cores=1,
                step=step,
                random_seed=1,
                **quiet,
            )
    sampling = time.process_time() - started - setup
    effective = az.ess(idata)["beta"].values
    n_draws = CHAINS * (case.draws + case.tune)
    least, statistics = float(effective.min()), idata.sample_stats
    everything = setup + WANTED * sampling / least
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return [
        Measurement("set-up", setup, "s", bar=case.setup_seconds),
        Measurement("a draw", 1e3 * sampling / n_draws, "ms"),
        Measurement("rows of a decision, to all", float(statistics["data_fraction"].mean())),
        Measurement("accepted, to all", float(statistics["accepted"].mean())),
        Measurement(
            "an effective draw of the least", 1e3 * sampling / least, "ms", bar=case.milliseconds
        ),
        Measurement("of the median", 1e3 * sampling / float(np.median(effective)), "ms"),
        Measurement(f"{WANTED} effective draws of the least, everything", everything, "s"),
        Measurement("peak memory, to the covariates", peak / case.n_bytes),
    ]


def main() -> None:
    """Measure what is missing, or what is named, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m examples.benchmarks.wide", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *CASES], help="measure these again")
    names = parser.parse_args().names
    logging.getLogger("pymc").setLevel(logging.WARNING)
    if len(names) == 1:
        case = CASES[names[0]]
        keep(names[0], case.title, measure(case), RESULTS)
    else:
        missing = [name for name in CASES if kept(name, RESULTS) is None]
        for name in names or missing:
            subprocess.run([sys.executable, "-m", "examples.benchmarks.wide", name], check=True)
    SITE.write_text(page(list(CASES), RESULTS) + "\n")


if __name__ == "__main__":
    main()
