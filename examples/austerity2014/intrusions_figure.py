"""Marginal and distance from the truth against time, at two step sizes (arXiv figures 5, 6)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from examples.austerity2014.experiment import Results, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "in_theory", "verdict"]

COLORS = {"uncorrected": "#D55E00", "exact": "#0072B2", "epsilon = 0.05": "#009E73"}
OURS = "control variates, tuned"


def draw(results: Results) -> "Figure":
    """A column for each step size: a marginal above, distances below."""
    sizes = list(results["samplers"])
    figure, axes = plt.subplots(
        2, len(sizes), figsize=(10, 6.4), squeeze=False, layout="constrained"
    )
    for column, size in enumerate(sizes):
        above, below = axes[:, column]
        above.stairs(results["truth"], results["edges"], fill=True, color="0.85", label="truth")
        samplers = results["samplers"][size] | {OURS: results["ours"]}
        for name, found in samplers.items():
            style = {"color": COLORS.get(name, "k"), "label": name, "linewidth": 1.5}
            above.stairs(found["density"], results["edges"], **style)
            below.plot(found["seconds"], np.mean(found["distance"], axis=0), **style)
        above.set(
            title=f"step size {float(size):g}", xlabel=f"coefficient {results['shown']}", yticks=[]
        )
        below.set(xscale="log", yscale="log", xlabel="seconds", ylabel="distance, posterior sd")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def verdict(results: Results) -> Verdict:
    """Whether the largest step is wrong without correction and the test is closer, and sooner."""
    *_, large = results["samplers"].values()
    raw, exact, test = large.values()
    biased = abs(raw["spread"] - 1.0) > 0.1
    repaired, sooner = last(test) < last(raw), last(test) < last(exact)
    sizes = [_at(results, size) for size in results["samplers"]]
    ours = results["ours"]
    said = (
        f"{' '.join(sizes)} So at the large step size the draws without correction are "
        f"{'' if biased else 'not '}wrong by more than 10 %, the test comes "
        f"{'closer' if repaired else 'not closer'} to the truth than they do in that time, and "
        f"{'closer' if sooner else 'not closer'} than exact decisions. With control variates in "
        f"gradient and test the distance is {last(ours):.2g} after {ours['seconds'][-1]:.2g} "
        f"seconds, at an acceptance of {ours['acceptance']:.2f}, and {ours['before']:.0f} seconds "
        "of set-up and tuning."
    )
    return Verdict(biased and repaired and sooner, said)


def last(found: dict[str, Any]) -> float:
    """Distance at the end, mean of the chains."""
    return float(np.mean(found["distance"], axis=0)[-1])


def _at(results: Results, size: str) -> str:
    """Distances, spreads and costs of the samplers at a step size."""
    samplers = results["samplers"][size]
    texts = [
        f"{name} {last(found):.2g} (spread {found['spread']:.2f}, acceptance "
        f"{found['acceptance']:.2g}, {found['n_steps']:,} steps)"
        for name, found in samplers.items()
    ]
    seconds = max(found["seconds"][-1] for found in samplers.values())
    spread, acceptance = in_theory(float(size), results)
    return (
        f"Step size {float(size):g}, distance after {seconds:.0f} seconds: {', '.join(texts)}; in "
        f"theory a spread of {spread:.2f} without correction, and with it an acceptance of "
        f"{acceptance:.2g}."
    )


def in_theory(size: float, results: Results) -> tuple[float, float]:
    """Spread of uncorrected draws and acceptance of corrected ones, of a normal posterior.

    The gradient of a mini-batch is off by e, the same at both ends of a step. In units of the
    posterior, e has the covariance (N/n) I, which makes the variance of the uncorrected chain
    (1 + h N / 4n) / (1 - h/4), and the log-ratio normal with variance s^2 = h d N / n and mean
    -s^2/2, so that the acceptance is twice the normal probability of less than -s/2.
    """
    noise = results["n_rows"] / results["gradient_rows"] - 1.0
    variance = (1.0 + 0.25 * size * noise) / (1.0 - 0.25 * size)
    log_ratio_sd = np.sqrt(size * results["n_coefficients"] * noise)
    return float(np.sqrt(variance)), float(2.0 * norm.cdf(-0.5 * log_ratio_sd))
