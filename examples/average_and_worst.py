"""Average against worst-case design on real decisions (ICML figure 6): digits and a mix of signals.

Tests are designed on 100 decisions of an exact chain for several targets, and asked about 100
others. An average design bounds the mean error of acceptance probabilities over decisions like
those it has seen, a worst-case design the error of any decision. A third line takes 600 rows a look
whatever the target, and only chooses epsilon; a fourth one also chooses the shape of the boundary.

Run ``python -m examples.average_and_worst``. The digits are read from the folder named by
``--data`` or by the environment variable PYMC_AUSTERITY_DATA, else downloaded; the mix is
simulated. ``--quick`` takes few decisions and leaves the site as it is.
"""

import argparse
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from examples import mixed_signals
from examples.datasets import load
from examples.digits import Digits, logistic_regression, papers_walk, posterior_mode
from examples.random_orders import OrderedRows, acceptance
from examples.triples import Question, ask, differences, posterior_points, trial_run
from pymc_austerity.design import (
    Boundary,
    TestDesign,
    TrialRun,
    acceptance_error,
    average_design,
    constant_looks,
    worst_case_design,
)

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "examples" / "output"
SITE = ROOT / "docs" / "_generated"

TARGETS = (0.003, 0.01, 0.03, 0.1)
HEURISTIC = 600
UNIT = 200
"""All batch sizes are multiples of it, so that the same looks serve all tests."""


@dataclass(frozen=True)
class Decisions:
    """Decisions of a chain, and the differences of their rows.

    Attributes
    ----------
    rows : sequence of float arrays, each of shape (N,)
        Differences, nats.
    trial : TrialRun
        Their moments and thresholds.
    """

    rows: Sequence[np.ndarray]
    trial: TrialRun

    @classmethod
    def of(cls, rows: Sequence[np.ndarray], questions: Sequence[Question]) -> "Decisions":
        """From questions and the differences of their rows."""
        return cls(rows, trial_run(rows, questions))


# ---------------------------------------------------------------------- decisions


def of_digits(data: str | None, n: int, thin: int) -> tuple[Decisions, Decisions]:
    """Two sets of decisions of the random walk on the digits."""
    digits = Digits.of(load("mnist_7v9", data))
    mode, _ = posterior_mode(digits.design, digits.labels)
    with logistic_regression(digits.design, digits.labels):
        sampler = papers_walk(mode.size, epsilon=0.0)
        points = posterior_points(sampler, mode, 2 * n, thin=thin, burn_in=10 * thin)
    rng = np.random.default_rng(6)
    questions = [ask(sampler, point, rng) for point in points]
    rows = [differences(sampler, question) for question in questions]
    return Decisions.of(rows[:n], questions[:n]), Decisions.of(rows[n:], questions[n:])


def of_signals(n_rows: int, n: int, thin: int) -> tuple[Decisions, Decisions]:
    """Two sets of decisions of the random walk on rotations."""
    rng = np.random.default_rng(7)
    signals = mixed_signals.whitened(mixed_signals.mix(n_rows, rng))
    asked = mixed_signals.decisions(signals, 2 * n, thin, rng)
    questions, rows = zip(*asked, strict=True)
    return Decisions.of(rows[:n], questions[:n]), Decisions.of(rows[n:], questions[n:])


# ---------------------------------------------------------------------- designs


def designs(training: TrialRun) -> dict[str, list[TestDesign]]:
    """The cheapest test for every target, by kind of design."""
    n_rows = training.n_rows
    doubled = UNIT * 2 ** np.arange(12)
    sizes = [int(size) for size in doubled if n_rows / 100 <= size <= n_rows / 3]
    pocock = (0.5,)

    def average(target: float, **others: Sequence[float]) -> TestDesign:
        return average_design(training, target, **{"batch_sizes": sizes, "alphas": pocock} | others)

    def worst(target: float) -> TestDesign:
        return worst_case_design(
            n_rows, target, mu_std=training.mu_std, batch_sizes=sizes, alphas=pocock
        )

    kinds: dict[str, Callable[[float], TestDesign]] = {
        "average": average,
        "worst case": worst,
        f"{HEURISTIC} rows a look": lambda target: average(target, batch_sizes=[HEURISTIC]),
        "average, any boundary": lambda target: average(target, alphas=(0.0, 0.2, 0.35, 0.5)),
    }
    return {kind: [design(target) for target in TARGETS] for kind, design in kinds.items()}


@dataclass(frozen=True)
class Measured:
    """What a designed test did to decisions it had not seen.

    Attributes
    ----------
    design : TestDesign
        The test.
    error, standard_error : float
        Mean absolute error of acceptance probabilities (signs from theory), over the decisions.
    wrong : float
        Share of wrong decisions.
    data_fraction : float
        Share of the rows read.
    """

    design: TestDesign
    error: float
    standard_error: float
    wrong: float
    data_fraction: float


def measure(
    found: dict[str, list[TestDesign]],
    test: Decisions,
    n_orders: int,
    rng: np.random.Generator,
) -> dict[str, list[Measured]]:
    """Ask all tests about all decisions, in the same random orders of the rows."""
    flat = [design for each in found.values() for design in each]
    asked = np.empty((len(flat), len(test.rows), 3))
    at_one = test.trial.log_threshold - test.trial.log_u
    for k, rows in enumerate(test.rows):
        seen = OrderedRows.draw(rows, UNIT, n_orders, rng)
        for i, design in enumerate(flat):
            ours = seen.every(design.batch_size // UNIT)
            boundary = Boundary(design.epsilon, design.alpha)
            one = acceptance(ours, boundary, test.trial.mean[k], at_one[k])
            asked[i, k] = one.error, one.wrong, one.data_fraction
    measured = iter([_summary(d, each, test.trial) for d, each in zip(flat, asked, strict=True)])
    return {kind: [next(measured) for _ in each] for kind, each in found.items()}


def _summary(design: TestDesign, asked: np.ndarray, trial: TrialRun) -> Measured:
    looks = constant_looks(design.batch_size, trial.n_rows)
    boundary = Boundary(design.epsilon, design.alpha)
    signs = np.sign(acceptance_error(trial.log_ratio, trial.spread, looks, boundary))
    errors = signs * asked[:, 0]
    spread = errors.std(ddof=1) / np.sqrt(errors.size)
    return Measured(design, errors.mean(), spread, asked[:, 1].mean(), asked[:, 2].mean())


# ---------------------------------------------------------------------- what is shown


def picture(by_data: dict[str, dict[str, list[Measured]]]) -> Figure:
    """Error and data usage on new decisions over the target, one row for each data set."""
    shape = (len(by_data), 2)
    figure, axes = plt.subplots(*shape, figsize=(9, 3.6 * len(by_data)), layout="constrained")
    for (left, right), (name, found) in zip(axes, by_data.items(), strict=True):
        for marker, (kind, each) in zip("os^d", found.items(), strict=True):
            errors = np.array([m.error for m in each])
            bars = [2.0 * m.standard_error for m in each]
            left.errorbar(TARGETS, errors, bars, marker=marker, label=kind, capsize=2)
            right.plot(TARGETS, [m.data_fraction for m in each], marker=marker, label=kind)
        left.plot(TARGETS, TARGETS, "0.6", lw=0.8)
        left.set(yscale="log", ylabel="error on new decisions", title=name)
        left.legend(frameon=False, fontsize="small")
        right.set(ylim=(0, 1), ylabel="share of the rows read")
        for axis in (left, right):
            axis.set(xscale="log", xlabel="target")
    return figure


def table(by_data: dict[str, dict[str, list[Measured]]]) -> str:
    """What was designed and measured, as Markdown."""
    lines = [
        "| data | design | target | batch | epsilon | alpha | error on new decisions "
        "| wrong decisions | rows read |",
        "| --- " * 9 + "|",
    ]
    for name, found in by_data.items():
        for kind, each in found.items():
            for target, m in zip(TARGETS, each, strict=True):
                d = m.design
                lines.append(
                    f"| {name} | {kind} | {target:.1%} | {d.batch_size:,} | {d.epsilon:.3g} "
                    f"| {d.alpha:g} | {m.error:.2%} ± {m.standard_error:.2%} | {m.wrong:.1%} "
                    f"| {m.data_fraction:.1%} |"
                )
    return "\n".join(lines) + "\n"


def verdict(by_data: dict[str, dict[str, list[Measured]]]) -> str:
    """The paper's claims in numbers."""
    sentences = []
    for name, found in by_data.items():
        average, worst = found["average"], found["worst case"]
        ratios = [m.error / t for m, t in zip(average, TARGETS, strict=True)]
        saved = [w.data_fraction / a.data_fraction for w, a in zip(worst, average, strict=True)]
        fixed = [
            m.data_fraction / a.data_fraction
            for m, a in zip(found[f"{HEURISTIC} rows a look"], average, strict=True)
        ]
        low = max(m.error / t for m, t in zip(worst, TARGETS, strict=True))
        sentences.append(
            f"{name}: the average design's error on new decisions is {min(ratios):.2f} to "
            f"{max(ratios):.2f} times its target, the worst-case design's at most {low:.2f} times. "
            f"The worst-case design reads {min(saved):.1f} to {max(saved):.1f} times as many rows "
            f"as the average one, {HEURISTIC} rows a look {min(fixed):.2f} to {max(fixed):.2f} "
            "times."
        )
    return "\n\n".join(sentences) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.average_and_worst", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data", metavar="FOLDER", help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="few decisions; the site stays")
    options = parser.parse_args(arguments)
    n, thin, n_orders, n_signals = (8, 2, 20, 5_000) if options.quick else (100, 20, 100, 100_000)
    sets = {
        "MNIST 7 v 9": of_digits(options.data, n, thin),
        f"{n_signals:,} mixed signals": of_signals(n_signals, n, thin),
    }
    rng = np.random.default_rng(8)
    by_data = {
        name: measure(designs(training.trial), test, n_orders, rng)
        for name, (training, test) in sets.items()
    }
    text = f"{verdict(by_data)}\n{table(by_data)}"
    print(text)
    OUTPUT.mkdir(exist_ok=True)
    figure, name = picture(by_data), "average_and_worst.png"
    figure.savefig(OUTPUT / name, dpi=80)
    plt.close(figure)
    if not options.quick:
        (SITE / "average_and_worst.md").write_text(text)
        shutil.copy(OUTPUT / name, SITE / name)


if __name__ == "__main__":
    main()
