"""Inclusion probabilities of exact and approximate chains (supplement of the ICML paper)."""

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014 import risk_figure
from examples.austerity2014.experiment import Results, Verdict
from pymc_austerity.plots.drawing import color

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "verdict", "verdict_on_risk"]

CLOSE = 0.1


def draw(results: Results) -> "Figure":
    """Bars for the truth, and a mark for every epsilon beside them."""
    figure, axis = plt.subplots(figsize=(10, 4), layout="constrained")
    truth = np.array(results["inclusion"])
    at = np.arange(truth.size)
    axis.bar(at, truth, color="0.85", width=0.9, label="truth")
    found = results["found_inclusion"]
    for number, (name, chains) in enumerate(found.items()):
        shift = 0.7 * ((number + 0.5) / len(found) - 0.5)
        mean = np.mean(chains, axis=0)
        reach = np.stack([mean - np.min(chains, axis=0), np.max(chains, axis=0) - mean])
        axis.errorbar(
            at + shift,
            mean,
            yerr=np.clip(reach, 0.0, None),  # rounding can make it negative
            fmt="o",
            markersize=3,
            linewidth=0.8,
            color=color(number),
            label=name,
        )
    axis.set(xlabel="variable", ylabel="inclusion probability", xticks=at)
    axis.legend(frameon=False, fontsize="small", ncols=6, loc="upper center")
    axis.set_ylim(0.0, 1.2)
    axis.set_title("mean of the chains; lines from the lowest to the highest", fontsize="small")
    return figure


def verdict(results: Results) -> Verdict:
    """Whether all inclusion probabilities are within 0.1 of the truth, with every epsilon."""
    truth = np.array(results["inclusion"])
    off = {
        name: np.abs(np.mean(chains, axis=0) - truth)
        for name, chains in results["found_inclusion"].items()
    }
    largest = risk_figure.by_epsilon({n: f"{each.max():.2f}" for n, each in off.items()})
    average = risk_figure.by_epsilon({n: f"{each.mean():.3f}" for n, each in off.items()})
    first, second = np.array(results["inclusion_halves"])
    moves = ", ".join(
        f"{kind} "
        + risk_figure.by_epsilon({n: f"{r[kind]:.2%}" for n, r in results["moves"].items()})
        for kind in ("update", "birth", "death")
    )
    ours = (
        f"Largest difference from the true inclusion probability by epsilon: {largest}; on "
        f"average over the {truth.size} variables: {average}. (The halves of the run that the "
        f"truth is from differ by {np.abs(first - second).max():.2f} at most.) Moves accepted: "
        f"{moves}."
    )
    return Verdict(bool(max(each.max() for each in off.values()) <= CLOSE), ours)


def verdict_on_risk(results: Results) -> Verdict:
    """Whether the lowest risk at the end is that of some epsilon above 0."""
    agrees, ours = risk_figure.verdict(results, "Standard deviations of the coefficients")
    rows = risk_figure.by_epsilon({n: f"{r:,.0f}" for n, r in results["rows_per_step"].items()})
    about = f" A step reads {rows} of the {results['n_rows']:,} rows of {results['data']}."
    return Verdict(agrees, ours + about)
