"""Inclusion probabilities of exact and approximate chains (supplement of the ICML paper)."""

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014 import risk, risk_figure
from examples.austerity2014.experiment import Results, Verdict
from pymc_austerity.plots.drawing import color

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "draw_defaults", "verdict", "verdict_on_risk"]

CLOSE, APART = 0.1, 0.5


def draw(results: Results) -> "Figure":
    """Bars for the truth, and a mark for every epsilon beside them."""
    return _bars(results, risk_figure.papers(results))


def draw_defaults(results: Results) -> "Figure":
    """The exact chains and those of the defaults."""
    return _bars(results, [risk_figure.EXACT, risk_figure.DEFAULTS])


def _bars(results: Results, names: list[str]) -> "Figure":
    figure, axis = plt.subplots(figsize=(10, 4), layout="constrained")
    truth = np.array(results["inclusion"])
    at = np.arange(truth.size)
    axis.bar(at, truth, color="0.85", width=0.9, label="truth")
    for number, name in enumerate(names):
        chains = inclusion(results, name)
        shift = 0.7 * ((number + 0.5) / len(names) - 0.5)
        mean = chains.mean(axis=0)
        reach = np.stack([mean - chains.min(axis=0), chains.max(axis=0) - mean])
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


def inclusion(results: Results, name: str) -> np.ndarray:
    """Inclusion probabilities in the second half of every chain, shape (chains, variables)."""
    return np.array([chain["inclusion"] for chain in results["chains"][name]])


def verdict(results: Results) -> Verdict:
    """Whether all inclusion probabilities are within 0.1 of the truth, with every epsilon."""
    truth, names = np.array(results["inclusion"]), risk_figure.papers(results)
    off = {name: np.abs(inclusion(results, name).mean(axis=0) - truth) for name in names}
    largest = risk_figure.by_epsilon({n: f"{each.max():.2f}" for n, each in off.items()})
    average = risk_figure.by_epsilon({n: f"{each.mean():.3f}" for n, each in off.items()})
    first, second = np.array(results["inclusion_halves"])
    size = {n: np.mean([chain["size"] for chain in results["chains"][n]]) for n in names}
    sizes = risk_figure.by_epsilon({n: f"{each:.1f}" for n, each in size.items()})
    ours = (
        f"In the second halves of the chains, the largest difference from the true inclusion "
        f"probability by epsilon is {largest}; on average over the {truth.size} variables: "
        f"{average}. (The halves of the run that the truth is from differ by "
        f"{np.abs(first - second).max():.2f} at most.) Variables in the model: {sizes}; in truth "
        f"{truth.sum():.1f}. Moves accepted: {_moves(results)}. {_audit(results)} "
        f"{_reasons(results)}"
    )
    return Verdict(bool(max(each.max() for each in off.values()) <= CLOSE), ours)


def _reasons(results: Results) -> str:
    """What the spread over chains says about the differences from the truth."""
    truth = np.array(results["inclusion"])
    errors, apart, reasons = {}, {}, {}
    for name in risk_figure.papers(results):
        chains = inclusion(results, name)
        off, error = largest_difference(chains, truth)
        between = float(np.ptp(chains, axis=0).max())
        errors[name], apart[name] = f"{error:.2f}", f"{between:.2f}"
        reasons[name] = reason(off, error, between)
    return (
        "Standard errors of the largest differences, from the spread over chains, are "
        f"{risk_figure.by_epsilon(errors)}; chains of the same epsilon differ from each other by "
        f"{risk_figure.by_epsilon(apart)} at most. So the differences are "
        f"{risk_figure.by_epsilon(reasons)}."
    )


def largest_difference(chains: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Largest difference of the chains' mean from the truth, and the standard error of it.

    Chains have the shape (chains, variables).
    """
    off = np.abs(chains.mean(axis=0) - truth)
    worst = int(off.argmax())
    return float(off[worst]), float(chains[:, worst].std(ddof=1) / np.sqrt(len(chains)))


def reason(off: float, error: float, between: float) -> str:
    """Why chains are off: in different modes, by more than chance, or perhaps by chance alone."""
    if off <= CLOSE:
        return "small"
    if between > APART:
        return "those of chains in different modes"
    return "beyond chance" if off > CLOSE + risk.SURE * error else "not told from chance"


def _moves(results: Results) -> str:
    """Accepted moves of every kind, as shares of those that are proposed."""
    return ", ".join(
        f"{kind} "
        + risk_figure.by_epsilon(
            {
                name: f"{np.mean([c['moves'][kind] for c in results['chains'][name]]):.2%}"
                for name in risk_figure.papers(results)
            }
        )
        for kind in ("update", "birth", "death")
    )


def _audit(results: Results) -> str:
    """How many of the accepted jumps all rows contradict."""
    texts = {}
    for name in risk_figure.papers(results):
        found = [chain["audited"] for chain in results["chains"][name]]
        jumps = sum(each["jumps"] for each in found)
        if jumps:
            texts[name] = f"{sum(each['wrong jumps'] for each in found)} of {jumps}"
    checked = risk_figure.by_epsilon(texts)
    return f"Accepted births and deaths that all rows contradict: {checked} that were checked."


def verdict_on_risk(results: Results) -> Verdict:
    """Whether the lowest risk at the end is that of some epsilon above 0."""
    agrees, ours = risk_figure.verdict(results)
    rows = {
        name: np.mean([chain["rows_per_step"] for chain in results["chains"][name]])
        for name in risk_figure.papers(results)
    }
    read = risk_figure.by_epsilon({name: f"{each:,.0f}" for name, each in rows.items()})
    about = f" A step reads {read} of the {results['n_rows']:,} rows of {results['data']}."
    return Verdict(agrees, ours + about)
