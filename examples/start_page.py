"""The picture of the start page; ``python -m examples.start_page``.

Time to 1,000 effective draws of the least well sampled parameter, with compilation, set-up and
tuning: against the number of rows from ``results/peers`` (``make bench-peers``), and against the
number of groups from ``results/groups`` (``python -m examples.many_groups``), once there are any.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from examples.benchmarks.grouped_table import seconds_to
from examples.benchmarks.peers.first import is_right
from examples.benchmarks.peers.results import (
    APPROXIMATIONS,
    Results,
    converged,
    seconds_until_known,
)
from examples.benchmarks.peers.samplers import COLORS, LABELS

ROOT = Path(__file__).parents[1]
PEERS = {
    "ours": LABELS["ours"],
    "nutpie": "NUTS (nutpie)",
    "numpyro_nuts": "NUTS (NumPyro)",
    "pymc_nuts": "NUTS (PyMC)",
    "hmcecs": "HMCECS (NumPyro)",
    "laplace": "Laplace (pymc-extras)",
}
MODEL = "logistic-20"
_EFFECTIVE = 1_000
Point = tuple[int, float]


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(prog="python -m examples.start_page", description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "_generated")
    options = parser.parse_args()
    draw(options.results, options.output / "start_page.png")


def draw(results: Path, file: Path) -> None:
    """Draw a panel for the rows and, where its numbers exist, one for the groups."""
    rows, groups = over_rows(results / "peers"), over_groups(results / "groups")
    panels = [(rows, "rows", "Logistic regression, 20 columns")]
    if any(groups.values()):
        title = "The same with an intercept for each group"
        panels.append((groups, "groups (100 to 200 rows each)", title))
    size = (5.2 * len(panels), 3.6)
    figure, axes = plt.subplots(1, len(panels), figsize=size, squeeze=False, layout="constrained")
    for axis, (points, what, title) in zip(axes[0], panels, strict=True):
        _panel(axis, points, what, title)
    axes[0, 0].set_ylabel("seconds to 1,000 effective draws")
    axes[0, 0].legend(fontsize="x-small", labelspacing=0.3, frameon=False)
    figure.savefig(file, dpi=100)
    plt.close(figure)


def over_rows(folder: Path) -> dict[str, list[Point]]:
    """Seconds against rows, for each sampler whose chain converged and each right approximation."""
    results = Results.read(folder)
    points: dict[str, dict[int, float]] = {name: {} for name in PEERS}
    for (model, n_rows, sampler), cell in results.cells.items():
        name = "laplace" if sampler.startswith("laplace") else sampler
        if model != MODEL or name not in PEERS or "failed" in cell or not converged(cell):
            continue
        if sampler in APPROXIMATIONS and not is_right(results.errors(model, n_rows, sampler)):
            continue
        if (seconds := seconds_until_known(cell)) is not None:
            points[name][n_rows] = min(seconds, points[name].get(n_rows, seconds))
    return {name: sorted(found.items()) for name, found in points.items()}


def over_groups(folder: Path) -> dict[str, list[Point]]:
    """Seconds against groups, for each sampler."""
    cells = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    return {name: sorted(_of_groups(cells, name)) for name in PEERS}


def _of_groups(cells: list[dict[str, Any]], sampler: str) -> Iterator[Point]:
    for cell in cells:
        if cell["sampler"] == sampler and cell["n_groups"] is not None:
            yield cell["n_groups"], seconds_to(_EFFECTIVE, cell)


def _panel(axis: Axes, points: dict[str, list[Point]], what: str, title: str) -> None:
    """One line for each sampler that has points, ours the strongest."""
    for name, label in PEERS.items():
        if points[name]:
            width = 2.5 if name == "ours" else 1.2
            style: dict[str, Any] = {"color": COLORS[name], "linewidth": width, "label": label}
            axis.loglog(*zip(*points[name], strict=True), "o-", **style)
    axis.set(xlabel=what, title=title)
    axis.title.set_fontsize("medium")
    axis.grid(alpha=0.3)


if __name__ == "__main__":
    main()
