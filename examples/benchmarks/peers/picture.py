"""Speed and time to 1,000 effective draws against the number of rows."""

from pathlib import Path

import matplotlib.pyplot as plt

from examples.benchmarks.peers.results import Results, converged, seconds_to_1000
from examples.benchmarks.peers.samplers import COLORS, LABELS

PANELS = {
    "effective draws a second": lambda cell: cell["ess_per_second_median"],
    "seconds to 1,000 effective draws": seconds_to_1000,
}


def write(folder: Path, file: Path) -> None:
    """Draw the cells of the logistic regression with 20 columns, a color for each sampler."""
    results = Results.read(folder)
    figure, axes = plt.subplots(1, 2, figsize=(12, 4), sharex=True, layout="constrained")
    for axis, (label, number) in zip(axes, PANELS.items(), strict=True):
        for name, color in COLORS.items():
            points = sorted(
                (n_rows, found)
                for (model, n_rows, sampler), cell in results.cells.items()
                if (model, sampler) == ("logistic-20", name)
                and "failed" not in cell
                and converged(cell)
                and (found := number(cell)) is not None
            )
            if points:
                its = {"color": color, "label": LABELS[name]}
                axis.loglog(*zip(*points, strict=True), "o-", **its)
        axis.set(xlabel="rows", ylabel=label)
        axis.grid(alpha=0.3)
    named = dict(zip(*axes[0].get_legend_handles_labels()[::-1], strict=True))
    figure.legend(named.values(), named.keys(), loc="outside right upper", frameon=False)
    figure.suptitle("Logistic regression, 20 columns, one core")
    figure.savefig(file, dpi=80)
    plt.close(figure)
