"""What a sequential test promises, against the test itself (ICML figure 1), and what designs cost.

Rows are drawn from a finite population, without replacement and in 20,000 random orders. The
paper's sequential t-test is asked at several epsilon about populations whose mean lies at several
distances from the threshold. Its share of wrong decisions and of rows read is drawn over the
curves of the dynamic program. A second picture shows what average and worst-case designs cost.

Run ``python -m examples.design_of_tests``. ``--quick`` takes 2,000 orders and leaves the site as it
is; otherwise the table and the pictures of its page are written.
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from examples.shared.acceptance import TrialRun, design_for_acceptance
from examples.shared.random_orders import OrderedRows, ask_test, quantiles
from pymc_austerity.design import (
    Boundary,
    TestDesign,
    average_design,
    constant_looks,
    operating_characteristic,
    worst_case_design,
)

OUTPUT = Path(__file__).parent / "output"
SITE = Path(__file__).parents[1] / "docs" / "_generated"

N_ROWS, BATCH_SIZE = 10_000, 500
EPSILONS = (0.01, 0.05, 0.1, 0.2)
MU_STD = np.array([1e-9, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
BATCH_SIZES = (100, 200, 400, 800, 1_600, 3_200)
TARGETS = (0.003, 0.01, 0.03, 0.1)


class Observed(NamedTuple):
    """Shares of wrong decisions and of rows read, each of shape (n_epsilon, n_mu_std)."""

    error: np.ndarray
    data_fraction: np.ndarray


def standardized(rows: np.ndarray) -> np.ndarray:
    """Rows with mean 0 and standard deviation 1."""
    return (rows - rows.mean()) / rows.std()


def simulate(rows: np.ndarray, n_orders: int, rng: np.random.Generator) -> Observed:
    """Ask the test at every epsilon and distance: one set of orders serves them all."""
    seen = OrderedRows.draw(rows, BATCH_SIZE, n_orders, rng)
    shares = np.append(seen.counts, rows.size) / rows.size
    observed = Observed(*np.empty((2, len(EPSILONS), MU_STD.size)))
    for i, epsilon in enumerate(EPSILONS):
        limits = quantiles(seen.counts, rows.size, Boundary(epsilon))
        for j, mu_std in enumerate(MU_STD):
            statistics = seen.statistics(-mu_std / np.sqrt(rows.size - 1))
            accepted, at = ask_test(statistics, limits, last=mu_std)
            observed.error[i, j] = np.mean(~accepted)
            observed.data_fraction[i, j] = shares[at].mean()
    return observed


def expected() -> Observed:
    """The same by dynamic programming."""
    looks = constant_looks(BATCH_SIZE, N_ROWS)
    found = [operating_characteristic(MU_STD, looks, Boundary(e)) for e in EPSILONS]
    return Observed(np.array([f.error for f in found]), np.array([f.data_fraction for f in found]))


def trial_run(n: int, rng: np.random.Generator) -> TrialRun:
    """Decisions of a random walk at a normal posterior's scale: differences spread over 1 nat."""
    log_u = np.log(rng.uniform(size=n))
    step = rng.normal(0.0, 1.0, size=n)
    return TrialRun(
        mean=(step - 0.5) / N_ROWS,
        standard_deviation=np.full(n, 1.0 / np.sqrt(N_ROWS)),
        log_threshold=log_u,
        log_u=log_u,
        n_rows=N_ROWS,
    )


def designs(trial: TrialRun) -> dict[str, list[TestDesign]]:
    """The cheapest test for every target, by what is promised."""
    sizes = BATCH_SIZES
    return {
        "mean error of acceptance probability": [
            design_for_acceptance(trial, target, batch_sizes=sizes) for target in TARGETS
        ],
        "mean error of decisions": [
            average_design(trial.mu_std, N_ROWS, target, batch_sizes=sizes) for target in TARGETS
        ],
        "worst error of decisions": [
            worst_case_design(N_ROWS, target, mu_std=trial.mu_std, batch_sizes=sizes)
            for target in TARGETS
        ],
    }


# ---------------------------------------------------------------------- pictures and tables


def picture_of_errors(observed: dict[str, Observed], n_orders: int, path: Path) -> None:
    """Error and data usage over the distance from the threshold, theory and simulation."""
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    grid, looks = np.linspace(0.0, 4.2, 200), constant_looks(BATCH_SIZE, N_ROWS)
    for i, epsilon in enumerate(EPSILONS):
        theory = operating_characteristic(grid, looks, Boundary(epsilon))
        for axis, name in zip(axes, Observed._fields, strict=True):
            axis.plot(grid, getattr(theory, name), color=f"C{i}", label=f"epsilon = {epsilon}")
            for marker, (rows, found) in zip("o+", observed.items(), strict=True):
                label = f"{rows}, simulated" if i == len(EPSILONS) - 1 else None
                values = getattr(found, name)[i]
                style = {"color": f"C{i}", "markerfacecolor": "none", "linestyle": "none"}
                axis.plot(MU_STD, values, marker=marker, label=label, **style)
    axes[0].set(ylabel="wrong decisions", ylim=(0, 0.52))
    axes[1].set(ylabel="share of the rows read", ylim=(0, 1))
    for axis in axes:
        axis.set_xlabel(r"$\mu_\mathrm{std}$")
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"N = {N_ROWS:,}, {BATCH_SIZE} rows a look, {n_orders:,} orders", fontsize=10)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def picture_of_designs(found: dict[str, list[TestDesign]], path: Path) -> None:
    """Rows read over the error that is allowed."""
    figure, axis = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    for marker, (promise, each) in zip("os^", found.items(), strict=True):
        axis.plot(
            TARGETS,
            [d.expected_data_fraction for d in each],
            marker=marker,
            label=f"bound: {promise}",
        )
    axis.set(xscale="log", xlabel="largest error", ylabel="share of the rows read", ylim=(0, 1))
    axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def largest_gap(found: Observed, theory: Observed, n_orders: int) -> float:
    """Largest difference of error rates in Monte Carlo standard errors."""
    spread = np.sqrt(theory.error * (1.0 - theory.error) / n_orders)
    return float(np.max(np.abs(found.error - theory.error) / spread))


def table_of_errors(observed: dict[str, Observed], theory: Observed, n_orders: int) -> str:
    """Error rates beside the threshold and at a distance of 1, as Markdown."""
    names = list(observed)
    lines = [
        "| epsilon | mu_std | in theory | " + " | ".join(names) + " |",
        "| --- " * (3 + len(names)) + "|",
    ]
    for i, epsilon in enumerate(EPSILONS):
        for j in (0, 3):
            cells = [f"{theory.error[i, j]:.2%}"] + [
                f"{o.error[i, j]:.2%}" for o in observed.values()
            ]
            lines.append(f"| {epsilon} | {MU_STD[j]:.0f} | " + " | ".join(cells) + " |")
    gaps = ", ".join(
        f"{name} {largest_gap(found, theory, n_orders):.1f}" for name, found in observed.items()
    )
    count = len(EPSILONS) * MU_STD.size
    lines += ["", f"Largest of {count} differences from theory, in standard errors: {gaps}."]
    return "\n".join(lines) + "\n"


def table_of_designs(found: dict[str, list[TestDesign]]) -> str:
    """What was chosen, as Markdown."""
    lines = [
        "| bound on | at most | batch | epsilon | alpha | rows read | mean error | worst error |",
        "| --- " * 8 + "|",
    ]
    for promise, each in found.items():
        for target, d in zip(TARGETS, each, strict=True):
            lines.append(
                f"| {promise} | {target:.1%} | {d.batch_size} | {d.epsilon:.3g} | {d.alpha:g} | "
                f"{d.expected_data_fraction:.1%} | {d.expected_error:.2%} | {d.worst_error:.1%} |"
            )
    return "\n".join(lines) + "\n"


def populations(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows that are normal, and rows with a long tail on one side."""
    return {
        "normal rows": standardized(rng.normal(size=N_ROWS)),
        "skewed rows": standardized(rng.lognormal(0.0, 1.0, size=N_ROWS)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, design, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few orders, the site left as it is")
    quick = parser.parse_args(arguments).quick
    n_orders = 2_000 if quick else 20_000
    rng = np.random.default_rng(2014)
    observed = {name: simulate(rows, n_orders, rng) for name, rows in populations(rng).items()}
    found = designs(trial_run(200 if quick else 1_000, rng))
    OUTPUT.mkdir(exist_ok=True)
    picture_of_errors(observed, n_orders, OUTPUT / "design_of_tests.png")
    picture_of_designs(found, OUTPUT / "designs.png")
    tables = {
        "design_of_tests.md": table_of_errors(observed, expected(), n_orders),
        "designs.md": table_of_designs(found),
    }
    for name, text in tables.items():
        print(text)
        if not quick:
            (SITE / name).write_text(text)
    if not quick:
        for name in ("design_of_tests.png", "designs.png"):
            shutil.copy(OUTPUT / name, SITE / name)


if __name__ == "__main__":
    main()
