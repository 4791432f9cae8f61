"""Marginal distributions after some time, against the truth (arXiv figure 4)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from examples.austerity2014.budgets import label
from examples.austerity2014.experiment import Results, Verdict
from examples.austerity2014.tables import by_sampler, texts
from examples.austerity2014.timed import TimedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARAMETERS = (1, 2)  # coefficients of the first two components
SHARES = (0.25, 0.5, 1.0)
N_BINS, N_QUANTILES = 30, 500
EXACT, SHOWN, DEFAULTS = label(0.0), label(0.01), "defaults"

Floats = NDArray[np.float64]


def facts(true: Floats) -> list[dict[str, Any]]:
    """Of each parameter: edges of the bins, density in them, quantiles and standard deviation."""
    found = []
    for values in true.T[list(PARAMETERS)]:
        reach = 4.5 * values.std()
        edges = np.linspace(values.mean() - reach, values.mean() + reach, N_BINS + 1)
        levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
        found.append(
            {
                "edges": edges.tolist(),
                "density": _density(values, edges),
                "quantiles": np.quantile(values, levels).round(6).tolist(),
                "sd": float(values.std()),
            }
        )
    return found


def describe(run: TimedRun, truth: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the draws of a chain up to three shares of it: densities, and the distance.

    The distance is Wasserstein's, in posterior standard deviations, averaged over the parameters.
    """
    found = []
    for share in SHARES:
        draws = run.draws("beta")[0, : max(int(share * run.seconds.shape[1]), 1)]
        each = [draws[:, parameter] for parameter in PARAMETERS]
        far = [
            wasserstein_distance(values, fact["quantiles"]) / fact["sd"]
            for values, fact in zip(each, truth, strict=True)
        ]
        found.append(
            {
                "density": [
                    _density(values, np.array(fact["edges"]))
                    for values, fact in zip(each, truth, strict=True)
                ],
                "distance": round(float(np.mean(far)), 4),
            }
        )
    return found


def _density(values: Floats, edges: Floats) -> list[float]:
    heights, _ = np.histogram(values, edges)
    return (heights / (values.size * np.diff(edges))).round(4).tolist()


def together(
    chains: dict[str, list[dict[str, Any]]], truth: list[dict[str, Any]], budget: dict[str, Any]
) -> dict[str, Any]:
    """What the figure needs of the samplers in it.

    Returns
    -------
    dict
        ``seconds`` of the papers, shape (3,); ``distance`` by sampler, shape (3, chains);
        ``edges`` of the bins and ``truth`` by parameter; by sampler, ``density`` of the first
        chain.
    """
    names = (EXACT, SHOWN, DEFAULTS)
    times = range(len(SHARES))
    return {
        "seconds": [budget["seconds"] * budget["ratio"] * share for share in SHARES],
        "edges": [fact["edges"] for fact in truth],
        "truth": [fact["density"] for fact in truth],
        "distance": {
            name: [[chain["marginals"][t]["distance"] for chain in chains[name]] for t in times]
            for name in names
        },
        "density": {
            name: [chains[name][0]["marginals"][t]["density"] for t in times] for name in names
        },
    }


def draw(results: Results) -> "Figure":
    """Histograms of the first chain of the exact and of an approximate sampler, over the truth."""
    return _panels(results["marginals"], {EXACT: "#0072B2", SHOWN: "#D55E00"})


def draw_defaults(results: Results) -> "Figure":
    """The first chain of the exact sampler and of the defaults, at the same shares of them."""
    return _panels(results["marginals"], {EXACT: "#0072B2", DEFAULTS: "#009E73"})


def _panels(found: dict[str, Any], samplers: dict[str, str]) -> "Figure":
    shape = (len(PARAMETERS), len(SHARES))
    figure, axes = plt.subplots(*shape, figsize=(10, 5), sharex="row", layout="constrained")
    for row, parameter in enumerate(PARAMETERS):
        edges = np.array(found["edges"][row])
        for column, seconds in enumerate(found["seconds"]):
            axis = axes[row, column]
            axis.stairs(found["truth"][row], edges, fill=True, color="0.8", label="truth")
            for name, color in samplers.items():
                heights = found["density"][name][column][row]
                axis.stairs(heights, edges, color=color, linewidth=1.6, label=name)
            axis.set(yticks=[], title=f"{seconds:.3g} s in the paper" if row == 0 else "")
        axes[row, 0].set_ylabel(f"coefficient of component {parameter}")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def verdict(results: Results) -> Verdict:
    """Whether the approximate sampler is closer to the truth at all three times."""
    found = results["marginals"]
    distance = {name: np.mean(each, axis=1) for name, each in found["distance"].items()}
    exact, approximate = distance[EXACT], distance[SHOWN]
    closer = int(np.sum(approximate < exact))
    n_times, n_chains = np.shape(found["distance"][EXACT])
    ours = (
        f"The marginals with {SHOWN} are closer to the truth at {closer} of {n_times} times. At "
        f"the last time, they are off by {approximate[-1]:.2g} posterior standard deviations, and "
        f"those of the exact sampler by {exact[-1]:.2g}."
    )
    caption = (
        "Wasserstein distance from the true marginals in posterior standard deviations, mean of "
        f"{n_chains} chains and two coefficients, after the steps that the paper made in a given "
        "time. The defaults are compared at the same shares of their draws."
    )
    rows = {
        f"after {seconds:.3g} seconds": texts({n: d[time] for n, d in distance.items()}, ".2g")
        for time, seconds in enumerate(found["seconds"])
    }
    return Verdict(closer == len(exact), ours, by_sampler(caption, rows))
