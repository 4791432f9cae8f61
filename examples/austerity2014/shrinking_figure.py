"""Risk of a shrinking epsilon beside that of fixed ones, and what its checks found."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from examples.austerity2014 import risk
from examples.austerity2014.balance import LOOSEST
from examples.austerity2014.budgets import epsilon_of, label
from examples.austerity2014.experiment import Results, Verdict
from pymc_austerity.plots import plot_risk

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SHRINKING", "draw", "draw_defaults", "regret", "verdict", "wins_and_losses"]

SHRINKING = "shrinking epsilon"
EXACT = label(0.0)
GREY = "grey: variance of the truth that we compare with"


def draw(results: Results) -> "Figure":
    """Risk against rows, and squared bias, variance and epsilon of the schedule against rows."""
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    _draw_risks(results, axes[0])
    _draw_balance(results["checks"], axes[1])
    for checks in results["checks"]:
        rows, epsilon = _column(checks, "rows"), _column(checks, "epsilon")
        axes[2].step(rows, epsilon, where="pre", color="C0", alpha=0.5)
    axes[2].set(xscale="log", yscale="log", xlabel="rows read", ylabel="epsilon, every chain")
    return figure


def draw_defaults(results: Results) -> "Figure":
    """The same risks and those of the defaults."""
    figure, axis = plt.subplots(figsize=(7, 4.6), layout="constrained")
    curve = results["defaults"]
    defaults = (curve["rows"], np.mean(curve["risk"], axis=0))
    _draw_risks(results, axis, {"defaults": defaults})
    return figure


def _draw_risks(results: Results, axis: "Axes", others: dict[str, Any] | None = None) -> None:
    rows = results["budget"]["rows"]
    curves = {name: (rows, mean) for name, mean in means(results).items()}
    plot_risk({**curves, **(others or {})}, of="predictive mean", ax=axis)
    axis.axhline(results["truth_error"], color="0.6", linewidth=0.8)
    axis.set(xlabel=f"rows read, audits counted\n{GREY}")


def _draw_balance(all_checks: list[list[dict[str, float]]], axis: "Axes") -> None:
    for number, checks in enumerate(all_checks):
        rows = _column(checks, "rows")
        for name, color in (("squared_bias", "C3"), ("variance", "C0")):
            values = _column(checks, name)
            shown = values > 0.0
            text = name.replace("_", " ") if number == 0 else None
            axis.plot(rows[shown], values[shown], ".-", color=color, alpha=0.5, label=text)
    axis.set(xscale="log", yscale="log", xlabel="rows read", ylabel="estimates of every chain")
    axis.legend()


def _column(checks: list[dict[str, float]], name: str) -> np.ndarray:
    return np.array([check[name] for check in checks])


def means(results: Results) -> dict[str, np.ndarray]:
    """Risk at every budget, averaged over chains, by name."""
    return {name: np.mean(chains, axis=0) for name, chains in results["risk"].items()}


def wins_and_losses(results: Results) -> tuple[int, int]:
    """Budgets at which the schedule is below all fixed epsilons, and above one, beyond chance."""
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
    wins_most = wins > n_budgets / 2
    rows, curves = results["budget"]["rows"], means(results)
    middle = n_budgets // 2
    ours = (
        f"The schedule is below every fixed epsilon at {wins} of {n_budgets} budgets, and above "
        f"at least one of them at {losses}, by more than {risk.SURE:g} standard errors. Risks "
        f"after {rows[middle] / 1e6:.3g} million rows are {_each(curves, middle)}; after "
        f"{rows[-1] / 1e6:.3g} million {_each(curves, -1)}. The largest ratio to the lowest risk "
        f"of a fixed epsilon, over the budgets, is {_texts(regret(results), '.2g')}. "
    )
    return Verdict(wins_most, ours + _explanation(results))


def _explanation(results: Results) -> str:
    """What the schedule did, and what its estimates are worth."""
    checks, common = results["checks"], results["squared_bias"]
    loose = [[check for check in each if check["epsilon"] == LOOSEST][-1] for each in checks]
    epsilons = sorted({each[-1]["epsilon"] for each in checks})
    exact = common[EXACT] / means(results)[EXACT][-1]
    return (
        f"Epsilon stayed at {LOOSEST:g} for {_range(loose, 'rows', 1e6)} million rows and was "
        f"{epsilons[0]:g} to {epsilons[-1]:g} at the last check; audits read "
        f"{results['audit_share']:.1%} of the rows. When it was checked last, {LOOSEST:g} had the "
        f"estimated squared bias {_mean(loose, 'squared_bias'):.2g} and the estimated variance "
        f"{_mean(loose, 'variance'):.2g}. The squared error that chains have in common in the end, "
        f"bias and way from the start together, less what chance explains, is "
        f"{_texts(common, '.2g')}; the exact chains' is "
        f"{exact:.0%} of their risk and comes from the start alone. Chains made "
        f"{_texts(results['steps'], ',.0f')} steps."
    )


def _range(checks: list[dict[str, float]], name: str, unit: float) -> str:
    values = _column(checks, name) / unit
    return f"{values.min():.3g} to {values.max():.3g}"


def _mean(checks: list[dict[str, float]], name: str) -> float:
    return float(_column(checks, name).mean())


def _each(curves: dict[str, np.ndarray], budget: int) -> str:
    return _texts({name: curve[budget] for name, curve in curves.items()}, ".2g")


def _texts(values: dict[str, float], form: str) -> str:
    """A list such as "0: 1.2, 0.05: 3.4, shrinking: 2.3"."""
    return ", ".join(f"{_short(name)}: {value:{form}}" for name, value in values.items())


def _short(name: str) -> str:
    return "shrinking" if name == SHRINKING else f"{epsilon_of(name):g}"
