"""Tables and pictures: what was measured next to theory."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from examples.decision_errors.acceptance import AcceptanceErrors, theory_of_acceptance
from examples.decision_errors.asked import Outcome
from examples.shared.acceptance import TrialRun
from examples.shared.digits import BATCH_SIZE
from pymc_austerity.design import (
    Boundary,
    OperatingCharacteristic,
    constant_looks,
    operating_characteristic,
)
from pymc_austerity.sequential import Decision

EPSILON_GRID = np.geomspace(0.002, 0.5, 40)
DISTANCES = np.linspace(0.0, 12.0, 200)


def theory(mu_std: np.ndarray | float, epsilon: float, n_rows: int) -> OperatingCharacteristic:
    """Error and share of the rows read, by dynamic programming."""
    return operating_characteristic(mu_std, constant_looks(BATCH_SIZE, n_rows), Boundary(epsilon))


def summary(exact: Sequence[Decision], n_rows: int) -> str:
    """One sentence on what was asked."""
    accepted = np.mean([right.accept for right in exact])
    distance = np.abs([right.standardized_mean for right in exact])
    quartiles = ", ".join(f"{value:.1f}" for value in np.quantile(distance, [0.25, 0.5, 0.75]))
    return (
        f"{len(exact):,} triples, {n_rows:,} rows, {BATCH_SIZE} at a look. All rows accept "
        f"{accepted:.0%} of the proposals. The quartiles of $|\\mu_\\mathrm{{std}}|$ are "
        f"{quartiles}."
    )


def table(outcomes: Sequence[Outcome], trial: TrialRun) -> str:
    """Decisions, as Markdown."""
    lines = [
        "| epsilon | rows | wrong decisions | 95 % interval | in theory "
        "| worst case in theory | share of the data read | in theory |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for outcome in outcomes:
        error, share = (x.mean() for x in theory(trial.mu_std, outcome.epsilon, trial.n_rows))
        worst = float(theory(0.0, outcome.epsilon, trial.n_rows).error)
        low, high = outcome.interval
        lines.append(
            f"| {outcome.epsilon} | {outcome.rows} | {outcome.error_rate:.2%} "
            f"| {low:.2%} to {high:.2%} | {error:.2%} | {worst:.0%} "
            f"| {outcome.share.mean():.1%} | {share:.1%} |"
        )
    return "\n".join(lines)


def table_of_acceptance(errors: Sequence[AcceptanceErrors]) -> str:
    """Acceptance probabilities, as Markdown."""
    lines = [
        "| epsilon | mean error of the acceptance probability | in theory | largest in theory |",
        "| --- | --- | --- | --- |",
    ]
    for each in errors:
        size, standard_error = each.size
        absolute = np.abs(each.theory)
        lines.append(
            f"| {each.epsilon} | {size:.2%} ± {standard_error:.2%} | {absolute.mean():.2%} "
            f"| {absolute.max():.1%} |"
        )
    return "\n".join(lines)


def over_distance(outcomes: Sequence[Outcome], trial: TrialRun) -> Figure:
    """Error and data usage over the standardized mean: theory as lines, measured as points."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    epsilons = sorted({outcome.epsilon for outcome in outcomes})
    colors = {epsilon: f"C{number}" for number, epsilon in enumerate(epsilons)}
    for epsilon in epsilons:
        error, share = theory(DISTANCES, epsilon, trial.n_rows)
        left.plot(DISTANCES, error, colors[epsilon], label=f"epsilon = {epsilon}")
        right.plot(DISTANCES, share, colors[epsilon])
    distance = np.abs(trial.mu_std)
    eighths = np.array_split(np.argsort(distance), 8)
    centers = [distance[eighth].mean() for eighth in eighths]
    markers = {"windows": "o", "fresh": "x"}
    for outcome in outcomes:
        style = {"color": colors[outcome.epsilon], "marker": markers[outcome.rows], "ls": ""}
        left.plot(centers, [outcome.wrong[eighth].mean() for eighth in eighths], **style, ms=4)
        right.plot(centers, [outcome.share[eighth].mean() for eighth in eighths], **style, ms=4)
    for rows, marker in markers.items():
        left.plot([], [], f"k{marker}", ms=4, label=f"measured, {rows}")
    left.set(ylabel="wrong decisions", ylim=(0, 0.52))
    left.legend(frameon=False)
    right.set(ylabel="share of the data read", ylim=(0, 1.02))
    for axis in (left, right):
        axis.set(xlabel=r"$|\mu_\mathrm{std}|$", xlim=(0, 12))
    return figure


def over_epsilon(
    outcomes: Sequence[Outcome],
    errors: Sequence[AcceptanceErrors],
    trial: TrialRun,
    pairs: TrialRun,
) -> Figure:
    """Error and data usage over epsilon: theory as lines, measured as points."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    averages = [theory(trial.mu_std, epsilon, trial.n_rows) for epsilon in EPSILON_GRID]
    left.plot(EPSILON_GRID, [a.error.mean() for a in averages], "C0", label="wrong decisions")
    right.plot(EPSILON_GRID, [a.data_fraction.mean() for a in averages], "C0")
    fresh = [outcome for outcome in outcomes if outcome.rows == "fresh"]
    _points(left, [(o.epsilon, o.error_rate, *o.interval) for o in fresh], "C0")
    right.plot([o.epsilon for o in fresh], [o.share.mean() for o in fresh], "C0o", ms=4)
    _acceptance_bands(left, pairs)
    sizes = [(each.epsilon, *each.size) for each in errors]
    _points(left, [(e, size, size - 2 * se, size + 2 * se) for e, size, se in sizes], "C1")
    left.plot(EPSILON_GRID, EPSILON_GRID, "0.6", lw=0.8, label="epsilon")
    left.set(ylabel="error", ylim=(0, 0.52))
    left.legend(frameon=False, fontsize="small")
    right.set(ylabel="share of the data read", ylim=(0, 1.02))
    for axis in (left, right):
        axis.set(xlabel="epsilon", xscale="log")
    return figure


def _acceptance_bands(axis: Axes, pairs: TrialRun) -> None:
    """Error of the acceptance probability in theory: its mean, and where 90 % of the pairs lie."""
    absolute = np.array([np.abs(theory_of_acceptance(pairs, e)) for e in EPSILON_GRID])
    low, high = np.quantile(absolute, [0.05, 0.95], axis=1)
    label = r"$|\Delta|$ of acceptance probabilities"
    axis.plot(EPSILON_GRID, absolute.mean(axis=1), "C1", label=label)
    axis.fill_between(EPSILON_GRID, low, high, color="C1", alpha=0.15, lw=0)


def _points(axis: Axes, points: Sequence[tuple[float, ...]], color: str) -> None:
    """Points with their intervals."""
    x, y, low, high = np.array(points).T
    axis.errorbar(x, y, [y - low, high - y], color=color, fmt="o", ms=4, lw=1)
