"""Marginal and error of the variances, at two step sizes (arXiv figures 5 and 6)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014.experiment import NumberTable, Results, Verdict
from examples.austerity2014.risk import SURE, in_errors, standard_errors
from examples.austerity2014.tables import heading
from pymc_austerity.plots import color

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNCORRECTED, EXACT = "uncorrected", "epsilon = 0"
SETTLED = 0.1

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
    """Errors at the large step size and of the defaults, against our processor time."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    samplers = results["samplers"][_large(results)] | {"defaults": results["defaults"]}
    for number, (name, chains) in enumerate(samplers.items()):
        seconds = _mean(chains, "seconds") + np.mean([chain["before"] for chain in chains])
        axis.plot(seconds, _mean(chains, "relative"), color=color(number), label=name)
    axis.axhline(results["truth"]["error"], color="0.6", linewidth=0.8)
    axis.set(xscale="log", yscale="log", ylabel="relative error of the variances")
    axis.set_xlabel("seconds of processor time, set-up and tuning included")
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
    """Whether the large step is wrong without correction, and the test closer than both others."""
    large = results["samplers"][_large(results)]
    tests = [name for name in large if name not in (UNCORRECTED, EXACT)]
    best = min(tests, key=lambda name: last(large[name]))
    raw, exact, test = (ends(large[name]) for name in (UNCORRECTED, EXACT, best))
    repaired, sooner = (standard_errors(other, test) for other in (raw, exact))
    biased = raw.mean() > SETTLED
    ours = (
        "At the large step size, the relative error of the variances is "
        f"{raw.mean():.2g} without correction, {test.mean():.2g} with the best test ({best}) and "
        f"{exact.mean():.2g} with exact decisions. The test is ahead of the uncorrected chains by "
        f"{in_errors(repaired)}, and of exact decisions by {in_errors(sooner)}."
    )
    agrees = bool(biased and repaired > SURE and sooner > SURE)
    return Verdict(agrees, ours, numbers(results))


def numbers(results: Results) -> NumberTable:
    """A row for each step size and sampler: length of the chains, errors and times."""
    header = (
        "step size",
        "epsilon",
        "steps",
        "relaxation times",
        "acceptance",
        "error",
        "lowest",
        "error of sums",
        "seconds",
    )
    rows = []
    for size, samplers in results["samplers"].items():
        rows += [(size, *_row(name, chains, float(size))) for name, chains in samplers.items()]
        theory = f"{results['in_theory'][size]:.2g}"
        rows.append((size, "uncorrected, theory", *["–"] * 3, theory, *["–"] * 3))
    rows.append(("tuned", *_row("defaults", results["defaults"], None)))
    return NumberTable(_caption(results), header, tuple(rows))


def _caption(results: Results) -> str:
    return (
        "Errors of the variances at the end of the chains. *Lowest* is the lowest error at any "
        "time; an error at the end well above it shows a bias. *Theory* is the error of long "
        "uncorrected chains if the posterior is normal. The true variances are known to "
        f"{results['truth']['error']:.1%}. Ten rows hold {results['concentration']:.0%} of the "
        "noise of the gradients. Seconds are our processor time, set-up and tuning included."
    )


def _row(name: str, chains: Chains, size: float | None) -> tuple[str, ...]:
    """Numbers of a sampler; without a step size it has no relaxation time."""
    accepted = np.mean([chain["acceptance"] for chain in chains])
    steps = chains[0]["steps"][-1]
    return (
        heading(name),
        f"{steps:,}",
        "–" if size is None else f"{0.5 * size * accepted * steps:,.3g}",
        f"{accepted:.2g}",
        f"{last(chains):.2g}",
        f"{_mean(chains, 'relative').min():.2g}",
        f"{last(chains, 'absolute'):.2g}",
        f"{chains[0]['seconds'][-1] + chains[0]['before']:.3g}",
    )
