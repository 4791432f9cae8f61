"""Risk in the predictive mean against seconds and against rows read (ICML figure 2)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014.experiment import Results, Verdict
from pymc_austerity.plots import plot_risk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "verdict"]

EXACT, DEFAULTS = "epsilon = 0", "defaults"


def draw(results: Results) -> "Figure":
    """Two panels that share the risk."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    curves = results["risk"]
    seconds = {name: (c["seconds"], mean(c)) for name, c in curves.items()}
    last = curves[DEFAULTS]
    counted = np.array(last["seconds"]) + last["before"]
    seconds["defaults, set-up and tuning counted"] = (counted, mean(last))
    plot_risk(seconds, ax=axes[0])
    plot_risk({name: (c["rows"], mean(c)) for name, c in curves.items()}, ax=axes[1])
    for axis in axes:
        axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axes[1].set(xlabel="rows read", ylabel="")
    axes[1].get_legend().remove()
    axes[0].set_title("grey: variance of the truth that we compare with", fontsize="small")
    return figure


def mean(curve: dict[str, Any]) -> np.ndarray:
    """Risk averaged over the chains."""
    return np.mean(curve["risk"], axis=0)


def at(curve: dict[str, Any], seconds: float) -> np.ndarray:
    """Risk of every chain at some time, interpolated between logs."""
    x, t = np.log(seconds), np.log(curve["seconds"])
    return np.exp([np.interp(x, t, np.log(risk)) for risk in curve["risk"]])


def verdict(results: Results) -> Verdict:
    """Whether the lowest risk at the end is that of some epsilon above 0."""
    curves = results["risk"]
    papers = [name for name in curves if name != DEFAULTS]
    end = min(curves[name]["seconds"][-1] for name in papers)
    final = {name: at(curves[name], end) for name in papers}
    best = min(papers, key=lambda name: final[name].mean())
    exact = final[EXACT].mean()
    ratios = "; ".join(f"{name.split()[-1]}: {r.mean():.2g}" for name, r in final.items())
    last = curves[DEFAULTS]
    ours = (
        f"After {end:.3g} seconds a chain the risk by epsilon is {ratios}. It is lowest with "
        f"{best}, {exact / final[best].mean():.1f} times below the exact sampler's"
        f"{_slope(curves, papers)}. The defaults reach {mean(last)[-1]:.2g} in "
        f"{last['seconds'][-1]:.3g} seconds after {last['before']:.3g} of set-up and tuning."
    )
    return Verdict(best != EXACT, ours)


def _slope(curves: dict[str, Any], papers: list[str]) -> str:
    """How fast risks still fall at the end: like 1/t where variance dominates."""
    powers = []
    for name in papers:
        end = curves[name]["seconds"][-1]
        fall = at(curves[name], end).mean() / at(curves[name], end / 4.0).mean()
        powers.append(f"{name.split()[-1]}: {np.log(fall) / np.log(4.0):.1f}")
    return f"; over the last factor of 4 in time risks fall like t to the power {'; '.join(powers)}"
