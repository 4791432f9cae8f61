"""Models with groups: AusterityMH and nutpie; ``python -m examples.many_groups [name ...]``.

One core, chains one after the other. Effective draws are counted for every parameter; "s to 400" is
the time to 400 effective draws of the least well sampled one, with set-up or compilation and the
tuning of one chain.
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

from examples.benchmarks.grouped_models import GROUPED_MODELS  # noqa: E402
from pymc_austerity import AusterityMH  # noqa: E402

DEFAULT = ("1,000 groups", "10,000 groups")
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
        bulk, n_chains = az.ess(data), data.sizes["chain"]
        sizes = np.concatenate([np.ravel(bulk[v].values) for v in bulk.data_vars])
        rates = sizes[np.isfinite(sizes)] / self.sampled
        needed = self.ready + self.tuned / n_chains + 400.0 / rates.min()
        numbers = [v for v in data.data_vars if data[v].ndim == 2]
        means = ", ".join(f"{v} {float(data[v].mean()):.3f}" for v in numbers)
        worst = f"{_largest(az.rhat(data)):.3f}" if n_chains > 1 else "-"
        return (
            f"| {name} | {self.ready:.1f} | {self.tuned:.1f} | {rates.min():.3g} "
            f"| {np.median(rates):.3g} | {worst} | {needed:.0f} | {means} | {self.note} |"
        )


def _largest(dataset: Any) -> float:
    return max(float(np.nanmax(dataset[v].values)) for v in dataset.data_vars)


def austerity(model: pm.Model, n_draws: int, n_chains: int) -> Result:
    """AusterityMH as it comes."""
    started = time.perf_counter()
    with model:
        step = AusterityMH()
        ready = time.perf_counter() - started
        started = time.perf_counter()
        idata = pm.sample(
            draws=n_draws,
            tune=n_draws,
            step=step,
            chains=n_chains,
            cores=1,
            random_seed=1,
            **QUIET,
        )
    half = (time.perf_counter() - started) / 2.0
    statistics = idata.sample_stats
    read = float(statistics["n_rows_used"].mean())
    note = f"{type(step).__name__}, {read:,.0f} rows a draw"
    return Result(ready, half, half, idata.posterior, note)


def nutpie(model: pm.Model, n_draws: int, n_chains: int) -> Result:
    """No-U-turn sampler on all rows."""
    import nutpie as package

    started = time.perf_counter()
    compiled = package.compile_pymc_model(model)
    ready = time.perf_counter() - started
    started = time.perf_counter()
    idata = package.sample(
        compiled, draws=n_draws, tune=n_draws, chains=n_chains, cores=1, seed=1, progress_bar=False
    )
    half = (time.perf_counter() - started) / 2.0
    return Result(ready, half, half, idata.posterior)


def main() -> None:
    """Run and print a table."""
    parser = argparse.ArgumentParser(prog="python -m examples.many_groups", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(GROUPED_MODELS)}")
    parser.add_argument("--draws", type=int, default=1_000, help="of AusterityMH")
    parser.add_argument("--nuts", type=int, default=200, help="draws of nutpie; 0 for none")
    parser.add_argument("--chains", type=int, default=1)
    options = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.WARNING)
    print("| | ready, s | tuned, s | least ESS/s | median | r_hat | s to 400 | means | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |")
    for name in options.names or DEFAULT:
        model = GROUPED_MODELS[name]()
        found = austerity(model, options.draws, options.chains)
        print(found.line(f"AusterityMH, {name}"), flush=True)
        if options.nuts:
            found = nutpie(model, options.nuts, options.chains)
            print(found.line(f"nutpie, {name}"), flush=True)


if __name__ == "__main__":
    main()
