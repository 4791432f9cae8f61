"""Decisions of exact chains: on the digits, and on rotations of mixed signals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from examples.shared import mixed_signals
from examples.shared.acceptance import TrialRun
from examples.shared.datasets import load
from examples.shared.digits import Digits, logistic_regression, papers_walk, posterior_mode
from examples.shared.triples import Question, ask, differences, posterior_points, trial_run


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
