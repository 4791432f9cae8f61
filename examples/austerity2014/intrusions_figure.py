"""Marginal and error of the variances, at two step sizes (arXiv figures 5 and 6)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014.experiment import Results, Verdict
from examples.austerity2014.risk import SURE, standard_errors
from pymc_austerity.plots.drawing import color

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "draw_defaults", "verdict"]

UNCORRECTED, EXACT = "uncorrected", "epsilon = 0"
SETTLED, RISEN = 0.1, 0.8

Chains = list[dict[str, Any]]


def draw(results: Results) -> "Figure":
    """A column for each step size: a marginal above, errors below."""
    sizes, truth = list(results["samplers"]), results["truth"]
    figure, axes = plt.subplots(
        2, len(sizes), figsize=(10, 6.4), squeeze=False, layout="constrained"
    )
    for column, size in enumerate(sizes):
        above, below = axes[:, column]
        above.stairs(truth["density"], truth["edges"], fill=True, color="0.85", label="truth")
        for number, (name, chains) in enumerate(results["samplers"][size].items()):
            style = {"color": color(number), "label": name, "linewidth": 1.5}
            above.stairs(chains[0]["density"], truth["edges"], **style)
            share = np.array(chains[0]["steps"]) / results["papers_steps"][name]
            below.plot(share, _mean(chains, "relative"), **style)
        above.set(title=f"step size {size}", xlabel=f"coefficient {truth['shown']}", yticks=[])
        below.set(xscale="log", yscale="log", xlabel="share of the paper's steps")
        below.set_ylabel("relative error of the variances")
        below.axhline(truth["error"], color="0.6", linewidth=0.8)
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def draw_defaults(results: Results) -> "Figure":
    """Errors at the large step size and of the defaults, in seconds of this machine."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    samplers = results["samplers"][_large(results)] | {"defaults": results["defaults"]}
    for number, (name, chains) in enumerate(samplers.items()):
        seconds = _mean(chains, "seconds") + np.mean([chain["before"] for chain in chains])
        axis.plot(seconds, _mean(chains, "relative"), color=color(number), label=name)
    axis.axhline(results["truth"]["error"], color="0.6", linewidth=0.8)
    axis.set(xscale="log", yscale="log", ylabel="relative error of the variances")
    axis.set_xlabel("seconds of processor time; set-up and tuning count for the defaults")
    axis.legend(frameon=False, fontsize="small")
    return figure


def _large(results: Results) -> str:
    return max(results["samplers"], key=float)


def _mean(chains: Chains, what: str) -> np.ndarray:
    return np.mean([chain[what] for chain in chains], axis=0)


def ends(chains: Chains) -> np.ndarray:
    """Error of every chain at its end."""
    return np.array([chain["relative"][-1] for chain in chains])


def last(chains: Chains, what: str = "relative") -> float:
    """Error at the end, mean of the chains."""
    return float(_mean(chains, what)[-1])


def verdict(results: Results) -> Verdict:
    """Whether the large step is wrong without correction and the test is closer, and sooner."""
    large = results["samplers"][_large(results)]
    tests = [name for name in large if name not in (UNCORRECTED, EXACT)]
    best = min(tests, key=lambda name: last(large[name]))
    raw, exact, test = (ends(large[name]) for name in (UNCORRECTED, EXACT, best))
    repaired, sooner = (standard_errors(other, test) for other in (raw, exact))
    biased = raw.mean() > SETTLED
    sizes = [_at(results, size) for size in results["samplers"]]
    ours = results["defaults"]
    said = (
        f"{' '.join(sizes)} So at the large step size the variances without correction are "
        f"{'' if biased else 'not '}wrong by more than 10 %; those with the best test ({best}) "
        f"are {repaired:.1f} standard errors closer to the truth in that time, and {sooner:.1f} "
        f"closer than those of exact decisions.{_rises(large)} Ten rows hold "
        f"{results['concentration']:.0%} of the noise of the gradients. The defaults reach "
        f"{last(ours):.2g} in {ours[0]['seconds'][-1] + ours[0]['before']:.2g} seconds, set-up and "
        f"tuning counted; the variances of the truth are known to {results['truth']['error']:.1%}."
    )
    return Verdict(bool(biased and repaired > SURE and sooner > SURE), said)


def _rises(samplers: dict[str, Chains]) -> str:
    """Samplers whose error is well above what it was on the way: it settles at a bias."""
    lowest = {name: float(_mean(c, "relative").min()) for name, c in samplers.items()}
    risen = [name for name, low in lowest.items() if low < RISEN * last(samplers[name])]
    each = ", ".join(f"{n} from {lowest[n]:.2g} to {last(samplers[n]):.2g}" for n in risen)
    return f" Errors that rise again towards a bias: {each}." if risen else ""


def _at(results: Results, size: str) -> str:
    """Errors, acceptance and length of the chains at a step size."""
    texts = []
    for name, chains in results["samplers"][size].items():
        accepted = np.mean([chain["acceptance"] for chain in chains])
        steps = chains[0]["steps"][-1]
        texts.append(
            f"{name} {last(chains):.2g} ({last(chains, 'absolute'):.2g} as sums; acceptance "
            f"{accepted:.2g}, {steps:,} steps, {0.5 * float(size) * accepted * steps:,.3g} "
            f"relaxation times, {chains[0]['seconds'][-1]:.3g} s)"
        )
    return (
        f"Step size {size}, error of the variances after {results['ratios'][size]:g} times the "
        f"paper's steps: {', '.join(texts)}; in theory {results['in_theory'][size]:.2g} without "
        "correction in the end."
    )
