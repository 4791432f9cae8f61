"""Tests designed on some decisions and asked about others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from examples.average_and_worst_case_designs.decisions import Decisions
from examples.shared.acceptance import TrialRun, acceptance_error, design_for_acceptance
from examples.shared.random_orders import OrderedRows, acceptance
from pymc_austerity.design import (
    Boundary,
    TestDesign,
    constant_looks,
    worst_case_design,
)

TARGETS = (0.003, 0.01, 0.03, 0.1)
HEURISTIC = 600
UNIT = 200
"""All batch sizes are multiples of it, so that the same looks serve all tests."""


def designs(training: TrialRun) -> dict[str, list[TestDesign]]:
    """The cheapest test for every target, by kind of design."""
    n_rows = training.n_rows
    doubled = UNIT * 2 ** np.arange(12)
    sizes = [int(size) for size in doubled if n_rows / 100 <= size <= n_rows / 3]
    pocock = (0.5,)

    def average(target: float, **others: Sequence[float]) -> TestDesign:
        settings = {"batch_sizes": sizes, "alphas": pocock} | others
        return design_for_acceptance(training, target, **settings)

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
