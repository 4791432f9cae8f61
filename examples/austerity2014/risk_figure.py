"""Risk against the papers' time, rows read and our time (ICML figures 2, 3 and 4)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014 import risk
from examples.austerity2014.budgets import label
from examples.austerity2014.experiment import NumberTable, Results, Verdict
from examples.austerity2014.risk_curves import plot_risk
from examples.austerity2014.tables import by_sampler, texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXACT, DEFAULTS = label(0.0), "defaults"
SLOPE_OVER = 4.0
GRAY = "gray line: Monte Carlo variance of the true values"


def draw(results: Results, of: str = "predictive mean") -> "Figure":
    """Two panels that share the risk: against the papers' seconds and against rows read."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    curves = {name: results["risk"][name] for name in papers(results)}
    seconds = {n: (papers_seconds(results, n), mean(c)) for n, c in curves.items()}
    plot_risk(seconds, of=of, ax=axes[0])
    plot_risk({name: (c["rows"], mean(c)) for name, c in curves.items()}, ax=axes[1])
    for axis in axes:
        axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axes[0].set(xlabel=f"seconds in the papers for the same number of steps\n{GRAY}")
    axes[1].set(xlabel="rows read", ylabel="")
    axes[1].get_legend().remove()
    return figure


def draw_defaults(results: Results, of: str = "predictive mean") -> "Figure":
    """The same chains and those of the defaults, against our processor time."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    seconds = {name: (counted(curve), mean(curve)) for name, curve in results["risk"].items()}
    plot_risk(seconds, of=of, ax=axis)
    axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axis.set(xlabel=f"seconds of processor time, set-up and tuning included\n{GRAY}")
    return figure


def papers(results: Results) -> list[str]:
    """Names of the papers' samplers."""
    return [name for name in results["risk"] if name != DEFAULTS]


def papers_seconds(results: Results, name: str) -> np.ndarray:
    """Seconds in which a chain of the papers made as many steps, at a constant speed."""
    budget = results["budget"]
    steps = np.array(results["risk"][name]["steps"])
    return budget["seconds"] * steps / budget["steps"][name]


def counted(curve: dict[str, Any]) -> np.ndarray:
    """Seconds of our processor time, including set-up and tuning where they were timed."""
    return np.array(curve["seconds"]) + curve["before"]


def mean(curve: dict[str, Any]) -> np.ndarray:
    """Risk averaged over the chains."""
    return np.mean(curve["risk"], axis=0)


def at(results: Results, name: str, share: float) -> np.ndarray:
    """Risk of every chain at some share of its steps, interpolated between logs.

    It is NaN before the first recorded step.
    """
    curve = results["risk"][name]
    steps = np.log(curve["steps"])
    x = steps[-1] + np.log(share)
    return np.exp([np.interp(x, steps, np.log(risk), left=np.nan) for risk in curve["risk"]])


def lowest(results: Results) -> tuple[str, float, float]:
    """Sampler of the papers with the lowest risk at the end.

    Returns
    -------
    tuple of str, float and float
        Its name, the exact sampler's risk divided by its own, and the difference of the two risks
        in standard errors of the difference, from the spread over chains.
    """
    final = {name: at(results, name, 1.0) for name in papers(results)}
    best = min(final, key=lambda name: final[name].mean())
    above, below = final[EXACT], final[best]
    return best, float(above.mean() / below.mean()), risk.standard_errors(above, below)


def is_lower(results: Results) -> bool:
    """Whether the lowest risk at the end is that of some epsilon above 0, beyond chance."""
    best, _, errors = lowest(results)
    return best != EXACT and errors > risk.SURE


def verdict(results: Results) -> Verdict:
    """Whether the lowest risk at the end is that of some epsilon above 0, beyond chance."""
    return Verdict(is_lower(results), finding(results), numbers(results))


def finding(results: Results) -> str:
    """Which sampler of the papers has the lowest risk at the end, and by how much."""
    best, ratio, errors = lowest(results)
    if best == EXACT:
        return "At the end, the exact sampler has the lowest risk."
    return (
        f"At the end, {best} has the lowest risk. The risk of the exact sampler is {ratio:.3g} "
        f"times as large (a difference of {risk.in_errors(errors)})."
    )


def numbers(
    results: Results, more: Mapping[str, dict[str, str]] | None = None, note: str = ""
) -> NumberTable:
    """Steps, risks and times of every sampler; rows and a note can be added."""
    curves, budget = results["risk"], results["budget"]
    steps = {name: curve["steps"][-1] for name, curve in curves.items()}
    times = {n: 1e6 * c["seconds"][-1] / steps[n] for n, c in curves.items()}
    rows = {
        "steps": texts(steps, ",.0f"),
        "risk at the end": texts({n: mean(c)[-1] for n, c in curves.items()}, ".2g"),
        "risk at an eighth of the steps": texts(
            {n: at(results, n, 1 / 8).mean() for n in curves}, ".2g"
        ),
        "slope at the end": texts({n: slope(results, n) for n in papers(results)}, "z.1f"),
        "microseconds per step": texts(times, ",.0f"),
        "processor time, seconds": texts({n: counted(c)[-1] for n, c in curves.items()}, ".3g"),
        "of which set-up and tuning": texts({n: c["before"] for n, c in curves.items()}, ".3g"),
        **(more or {}),
    }
    caption = (
        f"Means of {len(curves[EXACT]['risk'])} chains with {budget['ratio']:.2g} times the "
        "papers' steps, which took the papers "
        f"{budget['ratio'] * budget['seconds']:,.0f} seconds. The slope is that of log risk "
        f"against log steps over the last factor of {SLOPE_OVER:g} in steps. It is -1 where "
        "variance dominates, and -2 where the error left by a finished transient does. Dashes: not "
        "evaluated, or too few steps."
    )
    return by_sampler(f"{caption} {note}".rstrip(), rows)


def slope(results: Results, name: str) -> float:
    """Slope of log risk against log steps at the end: -1 where variance dominates."""
    fall = at(results, name, 1.0).mean() / at(results, name, 1.0 / SLOPE_OVER).mean()
    return float(np.log(fall) / np.log(SLOPE_OVER))
