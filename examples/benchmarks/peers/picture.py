"""Speed and time to 1,000 effective draws against the number of rows."""

from pathlib import Path

import matplotlib.pyplot as plt

from examples.benchmarks.peers.results import Results, converged, seconds_to_1000
from examples.benchmarks.peers.samplers import LABELS

__all__ = ["write"]

PANELS = {
    "effective draws a second": lambda cell: cell["ess_per_second_median"],
    "seconds to 1,000 effective draws": seconds_to_1000,
}


def write(folder: Path, file: Path) -> None:
    """Draw the cells of the logistic regression with 20 columns."""
    results = Results.read(folder)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True, layout="constrained")
    for axis, (label, number) in zip(axes, PANELS.items(), strict=True):
        for name in LABELS:
            points = sorted(
                (n_rows, number(cell))
                for (model, n_rows, sampler), cell in results.cells.items()
                if (model, sampler) == ("logistic-20", name)
                and "failed" not in cell
                and converged(cell)
            )
            if points:
                axis.loglog(*zip(*points, strict=True), "o-", label=LABELS[name])
        axis.set(xlabel="rows", ylabel=label)
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize="small", frameon=False)
    figure.suptitle("Logistic regression, 20 columns, one core")
    figure.savefig(file, dpi=80)
    plt.close(figure)
