"""Marginal distributions after some time, against the truth (arXiv figure 4)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from examples.austerity2014.experiment import Results, Verdict
from examples.austerity2014.timed import TimedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["compare", "draw", "verdict"]

PARAMETERS = (1, 2)  # coefficients of the first two components
SHARES = (0.05, 0.25, 1.0)
N_BINS = 30
EXACT, SHOWN = "epsilon = 0", "epsilon = 0.1"

Floats = NDArray[np.float64]


def compare(runs: dict[str, TimedRun], true: Floats) -> dict[str, Any]:
    """Distances and histograms of every sampler at three shares of the shortest chain's time.

    Returns
    -------
    dict
        ``seconds``, shape (3,); ``distance`` by sampler, shape (3, chains): Wasserstein distance
        in posterior standard deviations, averaged over two parameters; ``edges`` of the bins by
        parameter; ``truth`` and, by sampler, ``density`` of the first chain.
    """
    seconds = min(run.seconds[:, -1].min() for run in runs.values()) * np.array(SHARES)
    edges = [np.linspace(*_range(true[:, p]), N_BINS + 1) for p in PARAMETERS]
    return {
        "seconds": seconds.round(3).tolist(),
        "edges": [edge.tolist() for edge in edges],
        "truth": [_density(true[:, p], e) for p, e in zip(PARAMETERS, edges, strict=True)],
        "distance": {n: [_distances(r, s, true) for s in seconds] for n, r in runs.items()},
        "density": {n: [_densities(r, s, edges) for s in seconds] for n, r in runs.items()},
    }


def _range(values: Floats) -> tuple[float, float]:
    return values.mean() - 4.5 * values.std(), values.mean() + 4.5 * values.std()


def _density(values: Floats, edges: Floats) -> list[float]:
    heights, _ = np.histogram(values, edges)
    return (heights / (values.size * np.diff(edges))).round(4).tolist()


def _until(run: TimedRun, chain: int, seconds: float) -> Floats:
    """Draws of a chain up to some time, at least one."""
    n_draws = max(np.searchsorted(run.seconds[chain], seconds, side="right"), 1)
    return run.draws("beta")[chain, :n_draws]


def _densities(run: TimedRun, seconds: float, edges: list[Floats]) -> list[list[float]]:
    draws = _until(run, 0, seconds)
    return [_density(draws[:, p], e) for p, e in zip(PARAMETERS, edges, strict=True)]


def _distances(run: TimedRun, seconds: float, true: Floats) -> list[float]:
    found = []
    for chain in range(len(run.seconds)):
        draws = _until(run, chain, seconds)
        each = [
            wasserstein_distance(draws[:, p], true[:, p]) / true[:, p].std() for p in PARAMETERS
        ]
        found.append(round(float(np.mean(each)), 4))
    return found


def draw(results: Results) -> "Figure":
    """Histograms of the first chain of the exact and of an approximate sampler, over the truth."""
    found = results["marginals"]
    shape = (len(PARAMETERS), len(SHARES))
    figure, axes = plt.subplots(*shape, figsize=(10, 5), sharex="row", layout="constrained")
    for row, parameter in enumerate(PARAMETERS):
        edges = np.array(found["edges"][row])
        for column, seconds in enumerate(found["seconds"]):
            axis = axes[row, column]
            axis.stairs(found["truth"][row], edges, fill=True, color="0.8", label="truth")
            for name, colour in ((EXACT, "#0072B2"), (SHOWN, "#D55E00")):
                heights = found["density"][name][column][row]
                axis.stairs(heights, edges, color=colour, linewidth=1.6, label=name)
            axis.set(yticks=[], title=f"{seconds:.3g} s" if row == 0 else "")
        axes[row, 0].set_ylabel(f"coefficient of component {parameter}")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def verdict(results: Results) -> Verdict:
    """Whether the approximate sampler is closer to the truth at all three times."""
    found = results["marginals"]
    exact, approximate = (np.mean(found["distance"][name], axis=1) for name in (EXACT, SHOWN))
    times = ", ".join(f"{s:.3g}" for s in found["seconds"])
    ours = (
        f"Distances from the truth after {times} seconds, in posterior standard deviations (mean "
        f"of {results['n_chains']} chains and two parameters): {_list(exact)} for the exact "
        f"sampler, {_list(approximate)} with {SHOWN}, "
        f"{_list(np.mean(found['distance']['defaults'], axis=1))} with the defaults."
    )
    return Verdict(bool(np.all(approximate < exact)), ours)


def _list(values: Floats) -> str:
    return ", ".join(f"{value:.2g}" for value in values)
