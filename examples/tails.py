"""Whether chains leave the tail of a posterior as often as they should, by two sequential tests.

The posterior is that of a saturation curve of which the data show only the beginning: its tail is
much heavier than that of the normal approximation. From points in the tail, points drawn from the
normal approximation are proposed. How often these proposals are accepted is counted, and compared
with the exact acceptance probabilities; the same is done for the reverse moves, into the tail.

Run ``python -m examples.tails``; one core is enough. ``--quick`` takes fewer points and leaves the
site as it is; otherwise the table of its page is written.
"""

import argparse
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.benchmarks.peers.problems import saturation
from pymc_austerity import AusterityMH, StudentTTest

OUTPUT = Path(__file__).parent / "output"
SITE = Path(__file__).parents[1] / "docs" / "_generated"
NAME = "tails"

N_ROWS = 100_000
EPSILON = 0.05
TESTS = {
    "as in the paper": StudentTTest(EPSILON),
    "relative": StudentTTest(EPSILON, relative=True),
}
FROM = (0.0, 2.0, 3.0)
"""Where tails begin, in posterior standard deviations of log(top) beyond its mean."""


class Curve:
    """Log-density of (log top, log half, log sigma), from sums over all rows.

    Parameters
    ----------
    x, y : float arrays, shape (N,)
        Data.
    """

    def __init__(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        self.x, self.y = x, y

    def log_density(self, point: NDArray[np.float64]) -> float:
        """Up to a constant, nats."""
        log_top, log_half, log_sigma = point
        shape = self.x / (np.exp(log_half) + self.x)
        errors = self.y - np.exp(log_top) * shape
        return float(self._of(errors @ errors, log_top, log_half, log_sigma))

    def _of(self, squares, log_top, log_half, log_sigma):  # type: ignore[no-untyped-def]
        sigma = np.exp(log_sigma)
        likelihood = -len(self.x) * log_sigma - 0.5 * squares / sigma**2
        prior = -0.5 * (log_top - 1.0) ** 2 - 0.5 * (log_half - 1.0) ** 2
        return likelihood + prior - 0.5 * (sigma / 5.0) ** 2 + log_sigma

    def draws(
        self, n_draws: int, log_sigma: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draws given sigma, on a grid; shape (n_draws, 3)."""
        log_top, log_half = np.linspace(0.5, 4.5, 801), np.linspace(-0.5, 4.5, 801)
        products, norms = np.empty((2, log_half.size))
        for k, half in enumerate(np.exp(log_half)):
            shape = self.x / (half + self.x)
            products[k], norms[k] = self.y @ shape, shape @ shape
        top = np.exp(log_top)[:, None]
        squares = self.y @ self.y - 2.0 * top * products + top**2 * norms
        density = self._of(squares, log_top[:, None], log_half, log_sigma)
        chances = np.exp(density - density.max())
        cell = rng.choice(chances.size, size=n_draws, p=(chances / chances.sum()).ravel())
        row, column = np.unravel_index(cell, chances.shape)
        return np.stack([log_top[row], log_half[column], np.full(n_draws, log_sigma)], axis=1)


class Flow(NamedTuple):
    """Accepted moves of a test.

    Attributes
    ----------
    exact : float
        Average of the exact acceptance probabilities.
    ratio, error : float
        Accepted proposals relative to that, and the standard error of the ratio.
    rows : float
        Rows read by a decision, on average.
    """

    exact: float
    ratio: float
    error: float
    rows: float


def flow(
    step: AusterityMH,
    curve: Curve,
    moves: Sequence[tuple[NDArray, NDArray]],
    n_decisions: int,
    rng: np.random.Generator,
) -> Flow:
    """Decide each move (from, to) many times.

    Parameters
    ----------
    step : AusterityMH
        Its proposals are independent ones from its normal approximation.
    curve : Curve
    moves : sequence of pairs of float arrays, shape (3,)
    n_decisions : int
        Decisions on each move.
    rng : numpy.random.Generator
    """
    normal, decider = step.target.approximation, step.decider
    chances, n_accepted, n_rows = [], 0, 0
    for current, proposed in moves:
        log_ratio = normal.log_density(current) - normal.log_density(proposed)
        ascent = curve.log_density(proposed) - curve.log_density(current)
        chances.append(np.exp(min(log_ratio + ascent, 0.0)))
        for _ in range(n_decisions):
            decision = decider.decide(proposed, current, log_ratio, rng)
            n_accepted, n_rows = n_accepted + decision.accept, n_rows + decision.n_rows_used
    exact, n_all = np.array(chances), n_decisions * len(moves)
    noise = np.sqrt(n_decisions * np.sum(exact * (1.0 - exact)))
    expected = n_decisions * exact.sum()
    return Flow(exact.mean(), n_accepted / expected, noise / expected, n_rows / n_all)


def flows(start: float, n_points: int, n_decisions: int) -> dict[str, tuple[Flow, Flow]]:
    """Flow out of a tail and into it, by each test.

    Parameters
    ----------
    start : float
        Where the tail begins, in posterior standard deviations beyond the mean.
    n_points : int
        Points in the tail.
    n_decisions : int
        Decisions on each move.
    """
    problem, rng = saturation(N_ROWS), np.random.default_rng(1)
    curve = Curve(problem.rows["x"], problem.rows["y"])
    with problem.model(problem.rows):
        step = AusterityMH(epsilon=EPSILON, control_variates=2)
    normal = step.target.approximation
    draws = curve.draws(1_000_000, normal.mean[2], rng)
    limit = draws[:, 0].mean() + start * draws[:, 0].std()
    tail = draws[draws[:, 0] > limit][:n_points]
    away = normal.mean + rng.standard_normal(tail.shape) @ normal.root.T
    out, into = list(zip(tail, away, strict=True)), list(zip(away, tail, strict=True))
    found = {}
    for name, test in TESTS.items():
        step.decider.state.test = test
        found[name] = (
            flow(step, curve, out, n_decisions, rng),
            flow(step, curve, into, n_decisions, rng),
        )
    return found


def lines_of_table(start: float, found: dict[str, tuple[Flow, Flow]]) -> list[str]:
    """Lines of Markdown, one for each test."""
    lines = []
    for name, (out, into) in found.items():
        cells = [f"{start:g}", name, f"{out.exact:.2g}"]
        cells += [f"{flow.ratio:.2f} ± {flow.error:.2f}" for flow in (out, into)]
        cells += [f"{flow.rows:,.0f}" for flow in (out, into)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Count, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small, the site left as it is")
    quick = parser.parse_args(arguments).quick
    logging.getLogger("pymc").setLevel(logging.WARNING)
    n_points, n_decisions = (10, 50) if quick else (100, 200)
    head = [
        "tail beyond, sds", "t-test", "exact acceptance out of the tail",
        "accepted to exact, out", "accepted to exact, in", "rows, out", "rows, in",
    ]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "| ---: | --- " + "| ---: " * 5 + "|"]
    for start in FROM:
        lines += lines_of_table(start, flows(start, n_points, n_decisions))
        print("\n".join(lines[-len(TESTS) :]), flush=True)
    OUTPUT.mkdir(exist_ok=True)
    (OUTPUT / f"{NAME}.md").write_text("\n".join(lines) + "\n")
    if not quick:
        shutil.copy(OUTPUT / f"{NAME}.md", SITE / f"{NAME}.md")


if __name__ == "__main__":
    main()
