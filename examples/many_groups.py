"""Models with many groups: GroupedMH and nutpie; ``python -m examples.many_groups``.

One chain each, on one core. Effective draws are counted for every parameter; "s to 400" is the time
to 400 effective draws of the least well sampled one, with set-up or compilation and tuning.
"""

import argparse
import logging
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from typing import Any  # noqa: E402

import arviz as az  # noqa: E402
import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402

from examples.benchmarks.peers.problems import hierarchical  # noqa: E402
from pymc_austerity import GroupedMH  # noqa: E402

N_COLUMNS = 20
CELLS = {"1,000 groups": (200_000, 1_000), "10,000 groups": (1_000_000, 10_000)}
QUIET = {"progressbar": False, "compute_convergence_checks": False}


@dataclass(frozen=True)
class Result:
    """What a run took.

    Attributes
    ----------
    ready, tuned, sampled : float
        Seconds of set-up or compilation, of tuning, and of sampling.
    posterior : xarray.Dataset
        Draws of one chain.
    note : str
        What else is worth knowing.
    """

    ready: float
    tuned: float
    sampled: float
    posterior: Any
    note: str = ""

    def line(self, name: str) -> str:
        """Of a table."""
        data = self.posterior.dataset if hasattr(self.posterior, "dataset") else self.posterior
        bulk = az.ess(data)
        sizes = np.concatenate([np.ravel(bulk[v].values) for v in bulk.data_vars])
        rates = sizes / self.sampled
        needed = self.ready + self.tuned + 400.0 / rates.min()
        means = ", ".join(f"{v} {float(data[v].mean()):.3f}" for v in ("center", "spread"))
        return (
            f"| {name} | {self.ready:.1f} | {self.tuned:.1f} | {rates.min():.3g} "
            f"| {np.median(rates):.3g} | {needed:.0f} | {means} | {self.note} |"
        )


def grouped(model: pm.Model, n_draws: int) -> Result:
    """GroupedMH as it comes."""
    started = time.perf_counter()
    with model:
        step = GroupedMH()
        ready = time.perf_counter() - started
        started = time.perf_counter()
        idata = pm.sample(
            draws=n_draws, tune=n_draws, step=step, chains=1, cores=1, random_seed=1, **QUIET
        )
    half = (time.perf_counter() - started) / 2.0
    statistics = idata.sample_stats
    read = float(statistics["n_rows_used"].mean())
    return Result(ready, half, half, idata.posterior, f"{read:,.0f} rows a sweep")


def nutpie(model: pm.Model, n_draws: int) -> Result:
    """No-U-turn sampler on all rows."""
    import nutpie as package

    started = time.perf_counter()
    compiled = package.compile_pymc_model(model)
    ready = time.perf_counter() - started
    started = time.perf_counter()
    idata = package.sample(
        compiled, draws=n_draws, tune=n_draws, chains=1, cores=1, seed=1, progress_bar=False
    )
    half = (time.perf_counter() - started) / 2.0
    return Result(ready, half, half, idata.posterior)


def main() -> None:
    """Run and print a table."""
    parser = argparse.ArgumentParser(prog="python -m examples.many_groups", description=__doc__)
    parser.add_argument("cells", nargs="*", help=f"some of {', '.join(CELLS)}; default all")
    parser.add_argument("--draws", type=int, default=1_000, help="of GroupedMH")
    parser.add_argument("--nuts", type=int, default=200, help="draws of nutpie; 0 for none")
    options = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.WARNING)
    print("| | ready, s | tuned, s | least ESS/s | median | s to 400 | means | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |")
    for name in options.cells or CELLS:
        n_rows, n_groups = CELLS[name]
        problem = hierarchical(n_rows, n_groups, N_COLUMNS)
        model = problem.model(problem.rows)
        print(grouped(model, options.draws).line(f"GroupedMH, {name}"), flush=True)
        if options.nuts:
            print(nutpie(model, options.nuts).line(f"nutpie, {name}"), flush=True)


if __name__ == "__main__":
    main()
