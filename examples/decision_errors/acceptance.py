"""Acceptance probabilities of the sequential test against the exact ones (equation 6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import sem

from examples.shared.acceptance import TrialRun, acceptance_error
from examples.shared.digits import BATCH_SIZE
from examples.shared.random_orders import OrderedRows, acceptance
from pymc_austerity.design import Boundary, constant_looks


@dataclass(frozen=True)
class AcceptanceErrors:
    """Error of the acceptance probability at one epsilon, Delta in equation 6 of the paper.

    Attributes
    ----------
    epsilon : float
        Threshold of one look.
    measured, theory : float arrays, shape (n_pairs,)
        Probability to accept minus the exact one: in random orders of the rows, and by dynamic
        programming.
    """

    epsilon: float
    measured: np.ndarray
    theory: np.ndarray

    @property
    def size(self) -> tuple[float, float]:
        """Measured mean of the absolute error, and its standard error.

        The sign is taken from theory: the absolute value of what was measured would count noise.
        """
        signed = self.measured * np.sign(self.theory)
        return float(signed.mean()), float(sem(signed))


def acceptance_errors(
    rows: Sequence[np.ndarray],
    trial: TrialRun,
    epsilons: Sequence[float],
    *,
    n_orders: int,
    rng: np.random.Generator,
) -> list[AcceptanceErrors]:
    """Acceptance probabilities of some pairs at every epsilon, from the same random orders."""
    at_one = trial.log_threshold - trial.log_u  # the threshold at u = 1
    measured = np.empty((len(epsilons), len(rows)))
    for k, each in enumerate(rows):
        seen = OrderedRows.draw(each, BATCH_SIZE, n_orders, rng)
        for i, epsilon in enumerate(epsilons):
            found = acceptance(seen, Boundary(epsilon), trial.mean[k], at_one[k])
            measured[i, k] = found.error
    theory = [theory_of_acceptance(trial, epsilon) for epsilon in epsilons]
    return [AcceptanceErrors(*each) for each in zip(epsilons, measured, theory, strict=True)]


def theory_of_acceptance(trial: TrialRun, epsilon: float) -> np.ndarray:
    """Error of the acceptance probability of every pair, by dynamic programming."""
    looks = constant_looks(BATCH_SIZE, trial.n_rows)
    return acceptance_error(trial.log_ratio, trial.spread, looks, Boundary(epsilon))
