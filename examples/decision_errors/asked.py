"""The sequential test asked about real decisions, with rows drawn in both ways."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binomtest, sem, t

from examples.shared.digits import BATCH_SIZE
from examples.shared.triples import Question
from pymc_austerity.deciding.sampling import UniformSampling
from pymc_austerity.rows import FreshRows, SharedRows, Windows
from pymc_austerity.sequential import Decision, StudentTTest, exceeds

N_ORDERS = 40
"""Orders in which rows are stored, for windows."""


def on_fresh_rows(sampling: UniformSampling, batch_size: int = BATCH_SIZE) -> UniformSampling:
    """Sampling of the same differences, of rows drawn anew for every decision."""
    return replace(sampling, draw=FreshRows(sampling.draw.source), batch_size=batch_size)


def on_windows(
    sampling: UniformSampling, rng: np.random.Generator, batch_size: int = BATCH_SIZE
) -> UniformSampling:
    """Sampling of the same differences, of consecutive rows in a new random order."""
    stored = sampling.draw.source.window(0, sampling.n_rows)
    rows = SharedRows(stored, rng.permutation(sampling.n_rows))
    return replace(sampling, draw=Windows(rows), batch_size=batch_size)


def answer(
    sampling: UniformSampling, question: Question, *, epsilon: float, rng: np.random.Generator
) -> Decision:
    """Decide by the sequential test."""
    survey = sampling.begin(question.proposed, question.current, rng)
    return exceeds(survey, question.log_threshold, rule=StudentTTest(epsilon))


@dataclass(frozen=True)
class Outcome:
    """What the test did with all the questions, at one epsilon and one way of drawing rows.

    Attributes
    ----------
    epsilon : float
        Threshold of one look.
    rows : str
        Way of drawing rows.
    wrong : bool array, shape (n_questions,)
        Whether the decision was not that of all rows.
    share : float array, shape (n_questions,)
        Share of the rows that was read.
    n_orders : int
        Orders of the rows, each of which served the same number of consecutive questions. 0 where
        every decision had rows of its own.
    """

    epsilon: float
    rows: str
    wrong: np.ndarray
    share: np.ndarray
    n_orders: int = 0

    @property
    def error_rate(self) -> float:
        """Share of the decisions that were wrong."""
        return float(self.wrong.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of 95 % for the error rate.

        Binomial (Wilson) for independent decisions. Decisions on windows of the same order are not
        independent, but orders are: Student's t on their error rates, where these differ.
        """
        rates = self.wrong.reshape(max(self.n_orders, 1), -1).mean(axis=1)
        if np.ptp(rates) > 0.0:
            low, high = t.interval(0.95, self.n_orders - 1, rates.mean(), sem(rates))
        else:
            test = binomtest(int(self.wrong.sum()), self.wrong.size)
            low, high = test.proportion_ci(0.95, "wilson")
        return max(low, 0.0), high


def judge(
    answers: Sequence[Decision], exact: Sequence[Decision], n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each answer is wrong, and the share of the rows that it read."""
    wrong = [made.accept != right.accept for made, right in zip(answers, exact, strict=True)]
    share = [made.n_rows_used / n_rows for made in answers]
    return np.array(wrong), np.array(share)


def measure(
    sampling: UniformSampling,
    questions: Sequence[Question],
    exact: Sequence[Decision],
    *,
    epsilon: float,
    rng: np.random.Generator,
) -> list[Outcome]:
    """Ask every question once for each way of drawing rows; windows in `N_ORDERS` orders."""
    n_rows = sampling.n_rows
    fresh = on_fresh_rows(sampling)
    on_fresh = [answer(fresh, question, epsilon=epsilon, rng=rng) for question in questions]
    on_window = []
    for group in np.array_split(np.arange(len(questions)), N_ORDERS):
        windows = on_windows(sampling, rng)
        on_window += [answer(windows, questions[i], epsilon=epsilon, rng=rng) for i in group]
    return [
        Outcome(epsilon, "windows", *judge(on_window, exact, n_rows), n_orders=N_ORDERS),
        Outcome(epsilon, "fresh", *judge(on_fresh, exact, n_rows)),
    ]


def spread_of_orders(
    sampling: UniformSampling,
    questions: Sequence[Question],
    exact: Sequence[Decision],
    *,
    epsilon: float,
    rng: np.random.Generator,
) -> str:
    """A sentence on how much the error rate depends on the order in which rows are stored."""
    rates = []
    for _ in range(N_ORDERS):
        windows = on_windows(sampling, rng)
        made = [answer(windows, question, epsilon=epsilon, rng=rng) for question in questions]
        wrong, _ = judge(made, exact, sampling.n_rows)
        rates.append(wrong.mean())
    mean, sd = np.mean(rates), np.std(rates, ddof=1)
    binomial = np.sqrt(mean * (1.0 - mean) / len(questions))
    return (
        f"{len(questions):,} of the triples were asked again at epsilon = {epsilon}, in each of "
        f"{N_ORDERS} orders of the rows: the error rates have a mean of {mean:.1%} and a standard "
        f"deviation of {sd:.1%}, where independent decisions would give {binomial:.1%}."
    )
