"""Conditional probabilities and errors of marginals of a Markov random field (arXiv 7 and 8)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from examples.austerity2014.experiment import NumberTable, Results, Verdict
from examples.austerity2014.risk import SURE, in_errors, standard_errors
from examples.austerity2014.risk_curves import plot_risk
from examples.austerity2014.risk_figure import DEFAULTS, EXACT
from examples.austerity2014.tables import by_sampler, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EARLY, LATE = 0.0125, 1.0
GRAY = "gray line: Monte Carlo error of the true values"

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
    """Whether errors grow with epsilon and pull probabilities towards one half."""
    probability = np.array(results["exact_probability"])
    noise = np.sqrt(probability * (1 - probability) / results["n_repeats"])
    rms, pull = {}, {}
    for name, found in results["decisions"].items():
        error = np.array(found["empirical"]) - probability
        rms[name] = float(np.sqrt(max(np.mean(error**2 - noise**2), 0.0)))
        pull[name] = float(np.mean(error * np.sign(0.5 - probability)))
    *_, largest = papers(results)
    caption = (
        "Errors of conditional probabilities of single updates. The Monte Carlo error has been "
        "subtracted from the root mean square. The pull is the mean error in the direction of one "
        "half."
    )
    rows = {
        "root mean square error": texts(rms, ".3f"),
        "mean pull towards one half": texts(pull, "z.3f"),
    }
    exact, *values = (rms[name] for name in papers(results))
    ours = (
        f"The root mean square error is {exact:.3f} for exact updates, {values[0]:.3f} with the "
        f"smallest epsilon above 0 and {values[-1]:.3f} with {largest}. With {largest}, "
        f"probabilities are pulled towards one half by {pull[largest]:.3f} on average."
    )
    agrees = exact <= min(values) and values[-1] == max(exact, *values) and pull[largest] > 0
    return Verdict(agrees, ours, by_sampler(caption, rows))


def draw_errors(results: Results) -> "Figure":
    """L1 error against the paper's time."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    shares = {name: _shares(results, name) for name in papers(results)}
    seconds = {name: results["budget"]["seconds"] * each for name, each in shares.items()}
    _errors(results, seconds, axis)
    axis.set_xlabel(f"seconds in the paper for the same number of sweeps\n{GRAY}")
    return figure


def draw_default_errors(results: Results) -> "Figure":
    """L1 error against our processor time, of all samplers."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    seconds = {name: _seconds(chains) for name, chains in results["l1"].items()}
    _errors(results, seconds, axis)
    axis.set_xlabel(f"seconds of processor time\n{GRAY}")
    return figure


def _errors(results: Results, times: dict[str, Floats], axis: "Axes") -> None:
    curves = {name: (time, error(results, name).mean(axis=0)) for name, time in times.items()}
    plot_risk(curves, ax=axis)
    axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axis.set_ylabel("L1 error of joint distributions of five variables")


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
    """Second of the paper after which the exact chains have less error, to about 2 %."""
    ratio, seconds = results["budget"]["ratio"], results["budget"]["seconds"]
    shares = np.geomspace(EARLY * ratio, ratio, 200)
    ahead = [at(results, name, s).mean() < at(results, EXACT, s).mean() for s in shares]
    last = int(np.flatnonzero([True, *ahead])[-1])
    return f"{seconds * shares[last]:.3g}" if last < shares.size else "not reached"


def verdict_on_errors(results: Results) -> Verdict:
    """Whether some epsilon above 0 is better early, and the largest worse in the end."""
    exact, *others = papers(results)
    early, late = (_errors_at(results, share) for share in (EARLY, LATE))
    best, worst = min(others, key=lambda name: early[name].mean()), others[-1]
    sooner = standard_errors(early[exact], early[best])
    biased = standard_errors(late[worst], late[exact])
    ours = (
        f"After the sweeps that the paper made in {_seconds_of(results, EARLY)} seconds, the error "
        f"is {early[best].mean():.3f} with {best} and {early[exact].mean():.3f} with exact "
        f"updates, a difference of {in_errors(sooner)}. At the end, it is "
        f"{late[worst].mean():.3f} with {worst} and {late[exact].mean():.3f} with exact updates, "
        f"a difference of {in_errors(biased)}."
    )
    return Verdict(sooner > SURE and biased > SURE, ours, _numbers(results))


def _errors_at(results: Results, share: float) -> dict[str, Floats]:
    """Errors of all chains of the paper's samplers at a share of our sweeps."""
    ratio = results["budget"]["ratio"]
    return {name: at(results, name, share * ratio) for name in papers(results)}


def _seconds_of(results: Results, share: float) -> str:
    """The paper's time at a share of our sweeps."""
    return f"{share * results['budget']['ratio'] * results['budget']['seconds']:,.4g}"


def _numbers(results: Results) -> NumberTable:
    """Errors, decisions and times of every sampler."""
    early, late = (
        {name: each.mean() for name, each in _errors_at(results, share).items()}
        for share in (EARLY, LATE)
    )
    late[DEFAULTS] = error(results, DEFAULTS)[:, -1].mean()
    chains, decisions = results["l1"], results["decisions"]
    rows = {
        "sweeps": texts({n: c[0]["sweeps"][-1] for n, c in chains.items()}, ",.0f"),
        f"error after {_seconds_of(results, EARLY)} seconds": texts(early, ".3f"),
        "error at the end": texts(late, ".3f"),
        "exact is better after (seconds)": {
            name: overtaken(results, name) for name in papers(results) if name != EXACT
        },
        "potentials evaluated": texts({n: d["share"] for n, d in decisions.items()}, ".0%"),
        "wrong decisions": texts({n: d["wrong"] for n, d in decisions.items()}, ".1%"),
        "our seconds": texts({n: _seconds(c)[-1] for n, c in chains.items()}, ".3g"),
    }
    caption = (
        f"L1 errors, means of {len(chains[EXACT])} chains. Seconds are those in which the paper "
        f"made as many sweeps ({_seconds_of(results, LATE)} at the end); our seconds are processor "
        f"time. The earliest time compared is {_seconds_of(results, EARLY)} seconds. Potentials "
        "evaluated are a share of those of an exact update."
    )
    return by_sampler(caption, rows)
