"""Inclusion probabilities of exact and approximate chains (supplement of the ICML paper)."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014 import risk, risk_figure
from examples.austerity2014.experiment import NumberTable, Results, Verdict
from examples.austerity2014.tables import by_sampler, texts
from pymc_austerity.plots import color

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    axis.set_title("dots: mean of the chains; lines: lowest to highest chain", fontsize="small")
    return figure


def inclusion(results: Results, name: str) -> np.ndarray:
    """Inclusion probabilities in the second half of every chain, shape (chains, variables)."""
    return np.array([chain["inclusion"] for chain in results["chains"][name]])


def verdict(results: Results) -> Verdict:
    """Whether all inclusion probabilities are within 0.1 of the truth, with every epsilon."""
    names = risk_figure.papers(results)
    off = {n: largest_difference(results, n)[0] for n in names}
    return Verdict(max(off.values()) <= CLOSE, _finding(results, off), _numbers(results))


def _finding(results: Results, off: dict[str, float]) -> str:
    """The largest difference of approximate chains, its reason, and how exact ones compare."""
    worst = max((name for name in off if name != risk_figure.EXACT), key=off.__getitem__)
    wrong, checked = audited_jumps(results, worst)
    return (
        f"The largest difference from a true inclusion probability is {off[worst]:.2f} with "
        f"{worst} ({reason(results, worst)}) and {off[risk_figure.EXACT]:.2f} with exact decisions "
        f"({reason(results, risk_figure.EXACT)}). Of the {checked} accepted births and deaths with "
        f"{worst} that were audited, {wrong} should have been rejected."
    )


def _numbers(results: Results) -> NumberTable:
    """Inclusion probabilities, model sizes, accepted moves and audits of every sampler."""
    truth, chains = np.array(results["inclusion"]), results["chains"]
    mean_off = {n: np.abs(inclusion(results, n).mean(axis=0) - truth).mean() for n in chains}
    largest = {name: largest_difference(results, name) for name in chains}
    jumps = {name: audited_jumps(results, name) for name in chains}
    rows = {
        "largest difference from the truth": texts({n: x for n, (x, _) in largest.items()}, ".2f"),
        "its standard error": texts({n: error for n, (_, error) in largest.items()}, ".2f"),
        "largest difference between chains": texts({n: apart(results, n) for n in chains}, ".2f"),
        "reason for the difference": {name: reason(results, name) for name in chains},
        "mean difference from the truth": texts(mean_off, ".3f"),
        "variables in the model": texts({n: _mean(c, "size") for n, c in chains.items()}, ".1f"),
        **{f"{kind}s accepted": _accepted(chains, kind) for kind in ("update", "birth", "death")},
        "audited births and deaths that were wrong": {
            name: f"{wrong} of {checked}" for name, (wrong, checked) in jumps.items() if checked
        },
    }
    first, second = np.array(results["inclusion_halves"])
    caption = (
        "Inclusion probabilities in the second halves of the chains. The two halves of the run "
        f"behind the true values differ by at most {np.abs(first - second).max():.2f}; its models "
        f"have {truth.sum():.1f} of {truth.size} variables on average. Accepted moves are shares "
        "of proposed ones. Last row: of the accepted births and deaths that were audited, how many "
        "should have been rejected."
    )
    return by_sampler(caption, rows)


def _mean(chains: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([chain[name] for chain in chains]))


def _accepted(chains: dict[str, list[dict[str, Any]]], kind: str) -> dict[str, str]:
    """Share of the proposed moves of a kind that are accepted, by sampler."""
    return texts(
        {n: np.mean([c["moves"][kind] for c in each]) for n, each in chains.items()}, ".2%"
    )


def largest_difference(results: Results, name: str) -> tuple[float, float]:
    """Largest difference of a sampler's mean from the truth, and the standard error of it."""
    chains = inclusion(results, name)
    off = np.abs(chains.mean(axis=0) - np.array(results["inclusion"]))
    worst = int(off.argmax())
    return float(off[worst]), float(chains[:, worst].std(ddof=1) / np.sqrt(len(chains)))


def apart(results: Results, name: str) -> float:
    """Largest difference between inclusion probabilities of two chains of a sampler."""
    return float(np.ptp(inclusion(results, name), axis=0).max())


def reason(results: Results, name: str) -> str:
    """Why chains are off: in different modes, by more than chance, or perhaps by chance alone."""
    off, error = largest_difference(results, name)
    if off <= CLOSE:
        return "small"
    if apart(results, name) > APART:
        return "chains in different modes"
    return "more than chance" if off > CLOSE + risk.SURE * error else "possibly chance"


def audited_jumps(results: Results, name: str) -> tuple[int, int]:
    """Accepted births and deaths that an audit finds wrong, and all that were audited."""
    found = [chain["audited"] for chain in results["chains"][name]]
    return sum(each["wrong jumps"] for each in found), sum(each["jumps"] for each in found)


def verdict_on_risk(results: Results) -> Verdict:
    """Whether the lowest risk at the end is that of some epsilon above 0."""
    rows = {name: _mean(chains, "rows_per_step") for name, chains in results["chains"].items()}
    about = f"The data set is {results['data']}, with {results['n_rows']:,} rows."
    numbers = risk_figure.numbers(results, {"rows read per step": texts(rows, ",.0f")}, about)
    return Verdict(risk_figure.is_lower(results), risk_figure.finding(results), numbers)
