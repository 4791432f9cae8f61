"""Models with groups: AusterityMH and nutpie; ``python -m examples.many_groups [name ...]``.

One core, chains one after the other. Effective draws are counted for every parameter; "s to 400" is
the time to 400 effective draws of the least well sampled one, with set-up or compilation and the
tuning of one chain. Numbers are kept as files in ``results/groups``, from which the table of the
page on groups is made, and the picture of ``python -m examples.start_page``.
"""

import argparse
import json
import logging
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import time  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import arviz as az  # noqa: E402
import numpy as np  # noqa: E402
import pymc as pm  # noqa: E402

from examples.benchmarks import grouped_table  # noqa: E402
from examples.benchmarks.circumstances import circumstances  # noqa: E402
from examples.benchmarks.grouped_models import GROUPED_MODELS, SIZES  # noqa: E402
from examples.benchmarks.grouped_table import seconds_to  # noqa: E402
from pymc_austerity import AusterityMH  # noqa: E402

DEFAULT = ("100 groups", "1,000 groups", "10,000 groups")
LABELS = {"ours": "AusterityMH", "nutpie": "nutpie"}
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "groups"
SITE = ROOT / "docs" / "_generated" / "many_groups.md"
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

    @property
    def cell(self) -> dict[str, Any]:
        """Its numbers: seconds, and effective draws per second of the least and the median one."""
        data = self.posterior
        bulk, n_chains = az.ess(data), data.sizes["chain"]
        sizes = np.concatenate([np.ravel(bulk[v].values) for v in bulk.data_vars])
        rates = sizes[np.isfinite(sizes)] / self.sampled
        return {
            "n_chains": n_chains,
            "n_draws": data.sizes["draw"],
            "ready_seconds": self.ready,
            "tuning_seconds": self.tuned / n_chains,
            "sampling_seconds": self.sampled,
            "ess_per_second_min": float(rates.min()),
            "ess_per_second_median": float(np.median(rates)),
            "rhat_max": _largest(az.rhat(data)) if n_chains > 1 else None,
            "means": {v: float(data[v].mean()) for v in data.data_vars if data[v].ndim == 2},
            "note": self.note,
        }


def line(name: str, cell: dict[str, Any]) -> str:
    """Of a table."""
    means = ", ".join(f"{variable} {mean:.3f}" for variable, mean in cell["means"].items())
    worst = "-" if cell["rhat_max"] is None else f"{cell['rhat_max']:.3f}"
    return (
        f"| {name} | {cell['ready_seconds']:.1f} | {cell['tuning_seconds']:.1f} "
        f"| {cell['ess_per_second_min']:.3g} | {cell['ess_per_second_median']:.3g} | {worst} "
        f"| {seconds_to(400, cell):.0f} | {means} | {cell['note']} |"
    )


def keep(name: str, sampler: str, cell: dict[str, Any], folder: Path) -> None:
    """Write the numbers of a run."""
    n_groups, n_rows = {f"{size[0]:,} groups": size for size in SIZES}.get(name, (None, None))
    about = {"model": name, "n_groups": n_groups, "n_rows": n_rows, "sampler": sampler}
    folder.mkdir(parents=True, exist_ok=True)
    slug = name.replace(",", "").replace(" ", "_")
    text = json.dumps(about | cell | circumstances(), indent=1)
    (folder / f"{slug}_{sampler}.json").write_text(text + "\n")


def _dataset(group: Any) -> Any:
    return group.dataset if hasattr(group, "dataset") else group


def agreement(ours: Result, theirs: Result) -> str:
    """How far means and standard deviations are from each other, at most, over all parameters.

    In standard deviations of the posterior, and what Monte Carlo errors would make them.
    """
    names = [name for name in ours.posterior.data_vars if name in theirs.posterior.data_vars]
    one, two = (_moments(result.posterior[names]) for result in (ours, theirs))
    sds = np.sqrt((one["sd"] ** 2 + two["sd"] ** 2) / 2.0)
    errors = np.sqrt(1.0 / one["ess"] + 1.0 / two["ess"])
    varies = sds > 1e-9  # entries of factors and correlations may be constant
    sds, errors = sds[varies], errors[varies]
    one, two = ({k: v[varies] for k, v in moments.items()} for moments in (one, two))
    of_means = np.abs(one["mean"] - two["mean"]) / sds
    of_sds = np.abs(np.log(one["sd"] / two["sd"]))
    expected = errors * np.sqrt(2.0 * np.log(2.0 * errors.size))
    by_chance, worst = expected.max(), (of_means / errors).max()
    return (
        f"| | means differ by {of_means.max():.3f} sd at most (by chance up to {by_chance:.3f}, "
        f"the worst by {worst:.1f} Monte Carlo errors), sds by {100.0 * of_sds.max():.0f} % |"
    )


def _moments(data: Any) -> dict[str, Any]:
    bulk, dims = az.ess(data), ("chain", "draw")
    found = {"ess": bulk, "mean": data.mean(dims), "sd": data.std(dims)}
    joined = {
        name: np.concatenate([np.ravel(values[v].values) for v in data.data_vars])
        for name, values in found.items()
    }
    return joined


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
    return Result(ready, half, half, _dataset(idata.posterior), note)


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
    return Result(ready, half, half, _dataset(idata.posterior))


def main() -> None:
    """Run, and write the table of the page."""
    parser = argparse.ArgumentParser(prog="python -m examples.many_groups", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(GROUPED_MODELS)}")
    parser.add_argument("--draws", type=int, default=1_000, help="of AusterityMH")
    parser.add_argument("--nuts", type=int, default=200, help="draws of nutpie; 0 for none")
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="only write the table of the page")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if not options.table:
        run(options)
    if options.results == RESULTS:
        SITE.write_text(grouped_table.table(grouped_table.read(RESULTS)))


def run(options: argparse.Namespace) -> None:
    """Sample the models, and print what each run took."""
    logging.getLogger("pymc").setLevel(logging.WARNING)
    print("| | ready, s | tuned, s | least ESS/s | median | r_hat | s to 400 | means | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |")
    for name in options.names or DEFAULT:
        model = GROUPED_MODELS[name]()
        found = austerity(model, options.draws, options.chains)
        show(name, "ours", found, options.results)
        if options.nuts:
            reference = nutpie(model, options.nuts, options.chains)
            show(name, "nutpie", reference, options.results)
            print(agreement(found, reference), flush=True)


def show(name: str, sampler: str, result: Result, folder: Path) -> None:
    """Print a line of the table, and keep its numbers."""
    print(line(f"{LABELS[sampler]}, {name}", result.cell), flush=True)
    keep(name, sampler, result.cell, folder)


if __name__ == "__main__":
    main()
