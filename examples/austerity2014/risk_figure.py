"""Risk in the predictive mean against seconds and against rows read (ICML figure 2)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014.experiment import Results, Verdict
from pymc_austerity.plots import plot_risk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["by_epsilon", "draw", "label", "verdict"]

EXACT, DEFAULTS = "epsilon = 0", "defaults"
WIDER = "Wrong decisions widen the posterior: standard deviations"


def label(epsilon: float) -> str:
    """Name of a sampler of the paper."""
    return f"epsilon = {epsilon:g}"


def draw(results: Results, of: str = "predictive mean") -> "Figure":
    """Two panels that share the risk."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
    curves = results["risk"]
    seconds = {name: (c["seconds"], mean(c)) for name, c in curves.items()}
    if DEFAULTS in curves:
        last = curves[DEFAULTS]
        counted = np.array(last["seconds"]) + last["before"]
        seconds["defaults, set-up and tuning counted"] = (counted, mean(last))
    plot_risk(seconds, of=of, ax=axes[0])
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


def verdict(results: Results, spread: str = WIDER) -> Verdict:
    """Whether the lowest risk at the end is that of some epsilon above 0, beyond chance."""
    curves = results["risk"]
    papers = [name for name in curves if name != DEFAULTS]
    end = min(curves[name]["seconds"][-1] for name in papers)
    final = {name: at(curves[name], end) for name in papers}
    best = min(papers, key=lambda name: final[name].mean())
    ratio, error = _ratio(final[EXACT], final[best])
    certain = best != EXACT and ratio - 2.0 * error > 1.0
    risks = by_epsilon({name: f"{each.mean():.2g}" for name, each in final.items()})
    wider = by_epsilon({name: f"{results['spread'][name]:.2f}" for name in papers})
    ours = (
        f"After {end:.3g} seconds a chain the risk by epsilon is {risks}. The exact sampler's is "
        f"{ratio:.2f} ± {error:.2f} times the lowest ({best}), {'' if certain else 'not '}more "
        f"than chance explains. A step takes {_microseconds(results, papers)} microseconds. Over "
        f"the last factor of 4 in time risks fall like t to the power {_slopes(curves, papers)}. "
        f"{spread} over true ones are {wider}."
    )
    return Verdict(certain, ours + _defaults(curves))


def _defaults(curves: dict[str, Any]) -> str:
    """What the defaults reach, where they were run."""
    if DEFAULTS not in curves:
        return ""
    last = curves[DEFAULTS]
    return (
        f" The defaults reach {mean(last)[-1]:.2g} in {last['seconds'][-1]:.3g} seconds after "
        f"{last['before']:.3g} of set-up and tuning."
    )


def _ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Ratio of two mean risks, and its standard error from the spread over chains."""
    ratio = float(above.mean() / below.mean())
    relative = [each.var(ddof=1) / each.size / each.mean() ** 2 for each in (above, below)]
    return ratio, ratio * float(np.sqrt(np.sum(relative)))


def by_epsilon(texts: dict[str, str]) -> str:
    """A list such as "0: 1.2, 0.05: 3.4"."""
    return ", ".join(f"{name.split()[-1]}: {text}" for name, text in texts.items())


def _microseconds(results: Results, papers: list[str]) -> str:
    """Time of a step with every epsilon."""
    curves = {name: results["risk"][name] for name in papers}
    steps = results["steps_per_draw"]
    times = {n: 1e6 * c["seconds"][-1] / (c["n_draws"] * steps) for n, c in curves.items()}
    return by_epsilon({name: f"{time:,.0f}" for name, time in times.items()})


def _slopes(curves: dict[str, Any], papers: list[str]) -> str:
    """How fast risks still fall at the end: like 1/t where variance dominates."""
    powers = {}
    for name in papers:
        end = curves[name]["seconds"][-1]
        fall = at(curves[name], end).mean() / at(curves[name], end / 4.0).mean()
        powers[name] = f"{np.log(fall) / np.log(4.0):.1f}"
    return by_epsilon(powers)
