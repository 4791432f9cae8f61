"""Risk of a shrinking epsilon compared with fixed ones, and what its checks found."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014 import risk
from examples.austerity2014.balance import LOOSEST
from examples.austerity2014.budgets import label
from examples.austerity2014.experiment import NumberTable, Results, Verdict
from examples.austerity2014.risk_curves import plot_risk
from examples.austerity2014.risk_figure import DEFAULTS, GRAY
from examples.austerity2014.tables import by_sampler, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHRINKING = "shrinking epsilon"


def draw(results: Results) -> "Figure":
    """Risk against rows, and squared bias, variance and epsilon of the schedule against rows."""
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    _draw_risks(results, axes[0])
    _draw_balance(results["checks"], axes[1])
    for checks in results["checks"]:
        rows, epsilon = _column(checks, "rows"), _column(checks, "epsilon")
        axes[2].step(rows, epsilon, where="pre", color="C0", alpha=0.5)
    axes[2].set(xscale="log", yscale="log", xlabel="rows read", ylabel="epsilon of each chain")
    return figure


def draw_defaults(results: Results) -> "Figure":
    """The same risks and those of the defaults."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    curve = results["defaults"]
    defaults = (curve["rows"], np.mean(curve["risk"], axis=0))
    _draw_risks(results, axis, {DEFAULTS: defaults})
    return figure


def _draw_risks(results: Results, axis: "Axes", others: dict[str, Any] | None = None) -> None:
    rows = results["budget"]["rows"]
    curves = {name: (rows, mean) for name, mean in means(results).items()}
    plot_risk({**curves, **(others or {})}, of="predictive mean", ax=axis)
    axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axis.set(xlabel=f"rows read, audits included\n{GRAY}")


def _draw_balance(all_checks: list[list[dict[str, float]]], axis: "Axes") -> None:
    for number, checks in enumerate(all_checks):
        rows = _column(checks, "rows")
        for name, color in (("squared_bias", "C3"), ("variance", "C0")):
            values = _column(checks, name)
            shown = values > 0.0
            text = name.replace("_", " ") if number == 0 else None
            axis.plot(rows[shown], values[shown], ".-", color=color, alpha=0.5, label=text)
    axis.set(xscale="log", yscale="log", xlabel="rows read", ylabel="estimates in each chain")
    axis.legend()


def _column(checks: list[dict[str, float]], name: str) -> np.ndarray:
    return np.array([check[name] for check in checks])


def means(results: Results) -> dict[str, np.ndarray]:
    """Risk at every budget, averaged over chains, by name."""
    return {name: np.mean(chains, axis=0) for name, chains in results["risk"].items()}


def wins_and_losses(results: Results) -> tuple[int, int]:
    """Budgets at which the schedule is below all fixed epsilons, and above any, beyond chance."""
    risks = {name: np.array(chains).T for name, chains in results["risk"].items()}
    ours = risks.pop(SHRINKING)
    above = np.array(
        [
            [risk.standard_errors(*pair) for pair in zip(fixed, ours, strict=True)]
            for fixed in risks.values()
        ]
    )
    wins = (above > risk.SURE).all(axis=0)
    losses = (above < -risk.SURE).any(axis=0)
    return int(wins.sum()), int(losses.sum())


def regret(results: Results) -> dict[str, float]:
    """Largest ratio, over the budgets, of each risk to the lowest one of a fixed epsilon."""
    curves = means(results)
    lowest = np.min([curve for name, curve in curves.items() if name != SHRINKING], axis=0)
    return {name: float(np.max(curve / lowest)) for name, curve in curves.items()}


def verdict(results: Results) -> Verdict:
    """Whether the schedule has less risk than every fixed epsilon at most budgets."""
    n_budgets, (wins, losses) = len(results["budget"]["rows"]), wins_and_losses(results)
    common = results["squared_bias"][label(LOOSEST)]
    ours = (
        f"The schedule has less risk than every fixed epsilon at {wins} of {n_budgets} budgets and "
        f"more than some of them at {losses}, by more than {risk.SURE:g} standard errors. At its "
        f"first epsilon, {LOOSEST:g}, it estimates a squared bias of "
        f"{_mean(_last_loose(results), 'squared_bias'):.2g}; chains with this fixed epsilon share "
        f"a squared error of {common:.2g}, bias and transient together."
    )
    return Verdict(wins > n_budgets / 2, ours, _numbers(results))


def _last_loose(results: Results) -> list[dict[str, float]]:
    """The last check of each chain that still had the first epsilon."""
    return [[c for c in each if c["epsilon"] == LOOSEST][-1] for each in results["checks"]]


def _numbers(results: Results) -> NumberTable:
    """Risks and steps by rule, and what the schedule did."""
    rows, curves, common = results["budget"]["rows"], means(results), results["squared_bias"]
    middle = len(rows) // 2
    shared = {name: common[name] / curve[-1] for name, curve in curves.items()}
    table = {
        f"risk after {rows[budget] / 1e6:.3g} million rows": texts(
            {name: curve[budget] for name, curve in curves.items()}, ".2g"
        )
        for budget in (middle, -1)
    } | {
        "largest ratio to the lowest risk": texts(regret(results), ".2g"),
        "shared squared error at the end": texts(common, ".2g"),
        "its share of the risk": texts(shared, ".0%"),
        "steps": texts(results["steps"], ",.0f"),
    }
    return by_sampler(_caption(results), table)


def _caption(results: Results) -> str:
    """What the rows are, and what the schedule did."""
    loose = _last_loose(results)
    epsilons = sorted({each[-1]["epsilon"] for each in results["checks"]})
    return (
        f"Means of {len(results['checks'])} chains. The ratio is that of a risk to the lowest risk "
        "of a fixed epsilon, at the budget where it is largest. The shared squared error is that "
        "of the mean of the chains, less the part expected by chance: bias and transient together. "
        "Exact chains have no bias, so theirs is the transient alone. The schedule kept epsilon = "
        f"{LOOSEST:g} for {_range(loose, 'rows', 1e6)} million rows and had epsilon = "
        f"{epsilons[0]:g} to {epsilons[-1]:g} at the last check. At the last check with "
        f"{LOOSEST:g}, the estimated variance was {_mean(loose, 'variance'):.2g}. Audits read "
        f"{results['audit_share']:.1%} of the rows."
    )


def _range(checks: list[dict[str, float]], name: str, unit: float) -> str:
    values = _column(checks, name) / unit
    return f"{values.min():.3g} to {values.max():.3g}"


def _mean(checks: list[dict[str, float]], name: str) -> float:
    return float(_column(checks, name).mean())
