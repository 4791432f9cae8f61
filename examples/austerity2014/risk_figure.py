"""Risk in the papers' time, in rows read and in seconds here (ICML figures 2, 3 and 4)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014 import risk
from examples.austerity2014.budgets import label
from examples.austerity2014.experiment import Results, Verdict
from pymc_austerity.plots import plot_risk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["by_epsilon", "draw", "draw_defaults", "lowest", "verdict"]

EXACT, DEFAULTS = label(0.0), "defaults"
GREY = "grey: variance of the truth that we compare with"


def draw(results: Results, of: str = "predictive mean") -> "Figure":
    """Two panels that share the risk: against the papers' seconds and against rows read."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    curves = {name: results["risk"][name] for name in papers(results)}
    seconds = {n: (papers_seconds(results, n), mean(c)) for n, c in curves.items()}
    plot_risk(seconds, of=of, ax=axes[0])
    plot_risk({name: (c["rows"], mean(c)) for name, c in curves.items()}, ax=axes[1])
    for axis in axes:
        axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axes[0].set(xlabel=f"seconds of the papers: as many steps as they made in them\n{GREY}")
    axes[1].set(xlabel="rows read", ylabel="")
    axes[1].get_legend().remove()
    return figure


def draw_defaults(results: Results, of: str = "predictive mean") -> "Figure":
    """The same chains and those of the defaults, in seconds of this machine."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    seconds = {name: (counted(curve), mean(curve)) for name, curve in results["risk"].items()}
    plot_risk(seconds, of=of, ax=axis)
    axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axis.set(xlabel=f"seconds of processor time; set-up and tuning count for the defaults\n{GREY}")
    return figure


def papers(results: Results) -> list[str]:
    """Names of the papers' samplers."""
    return [name for name in results["risk"] if name != DEFAULTS]


def papers_seconds(results: Results, name: str) -> np.ndarray:
    """When a chain of the papers had made as many steps, at an even pace."""
    budget = results["budget"]
    steps = np.array(results["risk"][name]["steps"])
    return budget["seconds"] * steps / budget["steps"][name]


def counted(curve: dict[str, Any]) -> np.ndarray:
    """Seconds of processor time here; set-up and tuning count where they were timed."""
    return np.array(curve["seconds"]) + curve["before"]


def mean(curve: dict[str, Any]) -> np.ndarray:
    """Risk averaged over the chains."""
    return np.mean(curve["risk"], axis=0)


def at(results: Results, name: str, share: float) -> np.ndarray:
    """Risk of every chain at some share of its steps, interpolated between logs."""
    curve = results["risk"][name]
    steps = np.log(curve["steps"])
    x = steps[-1] + np.log(share)
    return np.exp([np.interp(x, steps, np.log(risk)) for risk in curve["risk"]])


def lowest(results: Results) -> tuple[str, float, float]:
    """Sampler of the papers with the lowest risk at the end.

    Returns
    -------
    tuple of str, float and float
        Its name, how many times its risk the exact sampler's is, and by how many standard errors of
        the difference, from the spread over chains, it is above.
    """
    final = {name: at(results, name, 1.0) for name in papers(results)}
    best = min(final, key=lambda name: final[name].mean())
    above, below = final[EXACT], final[best]
    return best, float(above.mean() / below.mean()), risk.standard_errors(above, below)


def verdict(results: Results) -> Verdict:
    """Whether the lowest risk at the end is that of some epsilon above 0, beyond chance."""
    names, budget = papers(results), results["budget"]
    best, ratio, errors = lowest(results)
    certain = best != EXACT and errors > risk.SURE
    end, eighth = (
        by_epsilon({name: f"{at(results, name, share).mean():.2g}" for name in names})
        for share in (1.0, 0.125)
    )
    steps = by_epsilon({name: f"{results['risk'][name]['steps'][-1]:,}" for name in names})
    ours = (
        f"With {budget['ratio']:.2g} times the papers' steps ({steps}), which they made in "
        f"{budget['ratio'] * budget['seconds']:,.0f} seconds, the risk by epsilon is {end}; at an "
        f"eighth of them it was {eighth}. The exact sampler's is {ratio:.3g} times the lowest "
        f"({best}), a difference of {errors:.1f} standard errors. A step takes "
        f"{_microseconds(results)} microseconds here. Over the last factor of 4 in steps risks "
        f"fall like t to the power {_slopes(results)}."
    )
    return Verdict(certain, ours + _defaults(results))


def _defaults(results: Results) -> str:
    """What the defaults reach, and in what time."""
    last, exact = results["risk"][DEFAULTS], results["risk"][EXACT]
    return (
        f" The defaults reach {mean(last)[-1]:.2g} in {counted(last)[-1]:.3g} seconds, "
        f"{last['before']:.3g} of them set-up and tuning; the exact chain takes "
        f"{counted(exact)[-1]:.3g}."
    )


def by_epsilon(texts: dict[str, str]) -> str:
    """A list such as "0: 1.2, 0.05: 3.4"."""
    return ", ".join(f"{name.split()[-1]}: {text}" for name, text in texts.items())


def _microseconds(results: Results) -> str:
    """Time of a step with every epsilon."""
    curves = {name: results["risk"][name] for name in papers(results)}
    times = {n: 1e6 * c["seconds"][-1] / c["steps"][-1] for n, c in curves.items()}
    return by_epsilon({name: f"{time:,.0f}" for name, time in times.items()})


def _slopes(results: Results) -> str:
    """How fast risks still fall at the end: like 1/t where variance dominates."""
    powers = {}
    for name in papers(results):
        fall = at(results, name, 1.0).mean() / at(results, name, 0.25).mean()
        powers[name] = f"{np.log(fall) / np.log(4.0):.1f}"
    return by_epsilon(powers)
