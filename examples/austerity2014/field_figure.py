"""Conditional probabilities and errors of marginals of a Markov random field (arXiv 7 and 8)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from examples.austerity2014.budgets import label
from examples.austerity2014.experiment import Results, Verdict
from examples.austerity2014.risk import SURE, standard_errors
from examples.austerity2014.risk_figure import DEFAULTS, EXACT, by_epsilon
from pymc_austerity.plots import plot_risk

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_conditionals",
    "draw_default_conditionals",
    "draw_default_errors",
    "draw_errors",
    "verdict_on_conditionals",
    "verdict_on_errors",
]

EARLY, LATE = 0.0125, 1.0
GREY = "grey: error of the truth that we compare with"

Floats = NDArray[np.float64]


def papers(results: Results) -> list[str]:
    """Names of the paper's samplers, epsilon growing."""
    return list(results["budget"]["steps"])


def draw_conditionals(results: Results) -> "Figure":
    """Empirical minus exact conditional probabilities with every epsilon."""
    return _conditionals(results, papers(results))


def draw_default_conditionals(results: Results) -> "Figure":
    """The same with exact updates and with the defaults."""
    return _conditionals(results, [EXACT, DEFAULTS])


def _conditionals(results: Results, names: list[str]) -> "Figure":
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    exact = np.array(results["exact_probability"])
    order = np.argsort(exact)
    for name in names:
        off = np.array(results["decisions"][name]["empirical"]) - exact
        axis.plot(exact[order], off[order], ".-", label=name, linewidth=0.7)
    axis.axhline(0.0, color="0.5", linewidth=0.8)
    axis.set(xlabel="exact conditional probability", ylabel="empirical minus exact")
    axis.legend(frameon=False, fontsize="small")
    return figure


def verdict_on_conditionals(results: Results) -> Verdict:
    """Whether errors grow with epsilon and pull towards one half."""
    exact = np.array(results["exact_probability"])
    noise = np.sqrt(exact * (1 - exact) / results["n_repeats"])
    rms, pull = {}, {}
    for name, found in results["decisions"].items():
        error = np.array(found["empirical"]) - exact
        rms[name] = float(np.sqrt(max(np.mean(error**2 - noise**2), 0.0)))
        pull[name] = float(np.mean(error * np.sign(0.5 - exact)))
    of_defaults = rms.pop(DEFAULTS)
    largest = papers(results)[-1]
    ours = (
        "Root mean square error of the conditional probability, Monte Carlo error taken out, by "
        f"epsilon: {by_epsilon({name: f'{each:.3f}' for name, each in rms.items()})}; at {largest} "
        f"they are pulled towards one half by {pull[largest]:.3f} on average. With the defaults it "
        f"is {of_defaults:.3f}."
    )
    values = list(rms.values())
    return Verdict(
        values[0] <= min(values[1:]) and values[-1] == max(values) and pull[largest] > 0, ours
    )


def draw_errors(results: Results) -> "Figure":
    """L1 error against the seconds of the paper."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    shares = {name: _shares(results, name) for name in papers(results)}
    seconds = {name: results["budget"]["seconds"] * each for name, each in shares.items()}
    _errors(results, seconds, axis)
    axis.set_xlabel(f"seconds of the paper: as many sweeps as it made in them\n{GREY}")
    return figure


def draw_default_errors(results: Results) -> "Figure":
    """L1 error against seconds of this machine, of all samplers."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    seconds = {name: _seconds(chains) for name, chains in results["l1"].items()}
    _errors(results, seconds, axis)
    axis.set_xlabel(f"seconds of processor time\n{GREY}")
    return figure


def _errors(results: Results, times: dict[str, Floats], axis: "Axes") -> None:
    curves = {name: (time, error(results, name).mean(axis=0)) for name, time in times.items()}
    plot_risk(curves, ax=axis)
    axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axis.set_ylabel("L1 error of marginals of five variables")


def error(results: Results, name: str) -> Floats:
    """Errors after so many sweeps, shape (chains, times)."""
    return np.array([chain["error"] for chain in results["l1"][name]])


def _seconds(chains: list[dict[str, Any]]) -> Floats:
    """Processor time here, mean of the chains."""
    seconds: Floats = np.mean([chain["seconds"] for chain in chains], axis=0)
    return seconds


def _shares(results: Results, name: str) -> Floats:
    """Numbers of sweeps as shares of the paper's."""
    sweeps = np.array(results["l1"][name][0]["sweeps"])
    return sweeps / results["budget"]["steps"][name]


def at(results: Results, name: str, share: float) -> Floats:
    """Error of every chain at a share of the paper's sweeps, interpolated between logs."""
    x, log_shares = np.log(share), np.log(_shares(results, name))
    curves = np.log(error(results, name))
    return np.exp([np.interp(x, log_shares, curve) for curve in curves])


def overtaken(results: Results, name: str) -> str:
    """Second of the paper from which on the exact chains have less error, to about 2 %."""
    ratio, seconds = results["budget"]["ratio"], results["budget"]["seconds"]
    shares = np.geomspace(EARLY * ratio, ratio, 200)
    ahead = [at(results, name, s).mean() < at(results, EXACT, s).mean() for s in shares]
    last = int(np.flatnonzero([True, *ahead])[-1])
    return f"{seconds * shares[last]:.3g}" if last < shares.size else "not in that time"


def verdict_on_errors(results: Results) -> Verdict:
    """Whether some epsilon above 0 is better early, and the largest worse in the end."""
    exact, *others = papers(results)
    budget = results["budget"]
    early, late = (
        {name: at(results, name, share * budget["ratio"]) for name in (exact, *others)}
        for share in (EARLY, LATE)
    )
    best, worst = min(others, key=lambda name: early[name].mean()), others[-1]
    sooner = standard_errors(early[exact], early[best])
    biased = standard_errors(late[worst], late[exact])
    decisions = results["decisions"]
    shares = by_epsilon({n: f"{decisions[n]['share']:.0%}" for n in others})
    wrong = by_epsilon({n: f"{decisions[n]['wrong']:.1%}" for n in others})
    chains, usual = results["l1"], decisions[DEFAULTS]
    reached = error(results, DEFAULTS)[:, -1].mean()
    ours = (
        f"With the paper's sweeps in {EARLY * budget['ratio'] * budget['seconds']:.3g} seconds the "
        f"error by epsilon is {_listed(early)}, the exact one {sooner:.1f} standard errors above "
        f"the lowest ({best}); in {LATE * budget['ratio'] * budget['seconds']:,.0f} seconds "
        f"{_listed(late)}, that of {worst} {biased:.1f} standard errors above the exact one. Exact "
        "chains have less error from this second of the paper on, by epsilon: "
        f"{by_epsilon({name: overtaken(results, name) for name in others})}. Factors of an exact "
        f"update that are evaluated: {shares}; wrong decisions: {wrong}. The defaults reach "
        f"{reached:.3f} in {_seconds(chains[DEFAULTS])[-1]:.3g} seconds, the exact chain "
        f"{late[exact].mean():.3f} in {_seconds(chains[exact])[-1]:.3g}, {label(0.05)} "
        f"{late[label(0.05)].mean():.3f} in {_seconds(chains[label(0.05)])[-1]:.3g}; updates of "
        f"the defaults evaluate {usual['share']:.0%} of the factors, and {usual['wrong']:.1%} of "
        "their decisions are wrong."
    )
    return Verdict(sooner > SURE and biased > SURE, ours)


def _listed(errors: dict[str, Floats]) -> str:
    return by_epsilon({name: f"{each.mean():.3f}" for name, each in errors.items()})
