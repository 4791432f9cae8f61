"""What exact decisions cost beside those of a sequential test, over rows and dimensions.

Logistic regressions of several sizes, and two real ones, are sampled with ``test="exact"`` and
with ``epsilon=0.05``; the proposals are the default ones. Counted are the rows that a decision
reads, and the time of a draw in ``pm.sample``.

Run ``python -m examples.exact_or_sequential``; one core is enough. ``--quick`` takes small data and
short runs and leaves the site as it is; otherwise the table and the picture of its page are
written.
"""

import argparse
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.benchmarks.models import logistic_data
from examples.benchmarks.peers.problems import kdd, with_intercept
from examples.shared.datasets import load
from pymc_austerity import AusterityMH

OUTPUT = Path(__file__).parent / "output"
SITE = Path(__file__).parents[1] / "docs" / "_generated"
NAME = "exact_or_sequential"

WAYS = {"exact": {"test": "exact"}, "sequential": {"epsilon": 0.05}}
DIMENSIONS = (5, 20, 50)
COLUMNS = ("rows read", "accepted", "µs a draw", "ESS a draw")
N_ROWS = (1_000, 10_000, 100_000, 1_000_000)


class Cost(NamedTuple):
    """What a way of deciding costs on some data.

    Attributes
    ----------
    rows : float
        Rows read by a decision, on average.
    accepted : float
        Share of the proposals.
    microseconds : float
        Time of a draw, tuning aside.
    efficiency : float
        Effective draws of a draw, of the least well sampled coefficient.
    """

    rows: float
    accepted: float
    microseconds: float
    efficiency: float


class Data(NamedTuple):
    """Data for a logistic regression."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.int8]


def simulated(n_rows: int, n_columns: int) -> Data:
    """Standard normal columns."""
    return Data(f"simulated, {n_columns} columns", *logistic_data(n_rows, n_columns))


def ijcnn1() -> Data:
    """Standardized columns, an intercept among them."""
    arrays = load("ijcnn1")
    x = arrays["X_train"].astype(np.float64)
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    return Data("ijcnn1", with_intercept(x), arrays["y_train"].astype(np.int8))


def real() -> Iterator[Callable[[], Data]]:
    """Data sets that are loaded when they are needed."""
    yield ijcnn1
    yield lambda: Data("KDD Cup 99", kdd().rows["x"], kdd().rows["y"])


def cost_of(data: Data, way: str, n_draws: int) -> Cost:
    """Sample, and count."""
    with pm.Model():
        beta = pm.Normal("beta", 0.0, 1.0, shape=data.x.shape[1])
        pm.Bernoulli("y", logit_p=data.x @ beta, observed=data.y)
        step = AusterityMH(**WAYS[way])
        times: list[float] = []

        def note(trace: object, draw: object) -> None:
            times.append(time.perf_counter())

        idata = pm.sample(
            step=step, draws=n_draws, tune=1_000, chains=1, cores=1, random_seed=1,
            progressbar=False, compute_convergence_checks=False, callback=note,
        )  # fmt: skip
    stats, used = idata.sample_stats, times[-n_draws:]
    return Cost(
        rows=float(stats["n_rows_used"].mean()),
        accepted=float(stats["accepted"].mean()),
        microseconds=1e6 * (used[-1] - used[0]) / (n_draws - 1),
        efficiency=float(az.ess(idata)["beta"].min()) / n_draws,
    )


def row_of_table(data: Data, costs: dict[str, Cost]) -> str:
    """One line of Markdown."""
    cells = [data.label, f"{len(data.y):,}", f"{data.x.shape[1]}"]
    for cost in costs.values():
        cells += [
            f"{cost.rows:,.3g}" if cost.rows < 1e3 else f"{cost.rows:,.0f}",
            f"{cost.accepted:.2f}",
            f"{cost.microseconds:.0f}",
            f"{cost.efficiency:.2f}",
        ]
    return "| " + " | ".join(cells) + " |"


def picture(found: dict[tuple[int, int], dict[str, Cost]], path: Path) -> None:
    """Rows and time over the number of rows: a color for each dimension."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    dimensions = sorted({d for _, d in found})
    for color, d in enumerate(dimensions):
        sizes = sorted(n for n, other in found if other == d)
        for way, style in zip(WAYS, ("-o", "--s"), strict=True):
            costs = [found[n, d][way] for n in sizes]
            label = f"{way}, {d} coefficients"
            for axis, name in zip(axes, ("rows", "microseconds"), strict=True):
                values = [getattr(cost, name) for cost in costs]
                axis.plot(sizes, values, style, color=f"C{color}", label=label)
    for axis, label in zip(axes, ("rows read by a decision", "time of a draw, µs"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="rows of the data", ylabel=label)
    named = axes[0].get_legend_handles_labels()
    figure.legend(*named, loc="outside right upper", frameon=False, fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Sample, write the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, the site left as it is")
    quick = parser.parse_args(arguments).quick
    logging.getLogger("pymc").setLevel(logging.WARNING)
    sizes, dimensions, n_draws = N_ROWS, DIMENSIONS, 10_000
    if quick:
        sizes, dimensions, n_draws = N_ROWS[:2], DIMENSIONS[:1], 500
    head = ["data", "rows", "coefficients", *(f"{what}, {way}" for way in WAYS for what in COLUMNS)]
    lines = ["| " + " | ".join(head) + " |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    found: dict[tuple[int, int], dict[str, Cost]] = {}
    for d in dimensions:
        for n in sizes:
            data = simulated(n, d)
            found[n, d] = {way: cost_of(data, way, n_draws) for way in WAYS}
            lines.append(row_of_table(data, found[n, d]))
            print(lines[-1], flush=True)
    for loaded in () if quick else real():
        data = loaded()
        lines.append(row_of_table(data, {way: cost_of(data, way, n_draws) for way in WAYS}))
        print(lines[-1], flush=True)
    OUTPUT.mkdir(exist_ok=True)
    picture(found, OUTPUT / f"{NAME}.png")
    (OUTPUT / f"{NAME}.md").write_text("\n".join(lines) + "\n")
    if not quick:
        for name in (f"{NAME}.md", f"{NAME}.png"):
            shutil.copy(OUTPUT / name, SITE / name)


if __name__ == "__main__":
    main()
