"""Moves between the models of a logistic regression, for exact sampling that mixes well."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from pymc_austerity.proposals import CrankNicolsonProposal
from pymc_austerity.proposals.protocols import GaussianApproximation

Floats = NDArray[np.float64]

RIDGE, MOST_STEPS = 1e-2, 30
MOVES = (1.0, 0.3)
_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


class ModelMoves:
    """Moves of indicators and coefficients about a normal approximation of each model.

    A point is the indicators, the coefficients and the intercept, joined. With equal
    probabilities the move is one of

    - a Crank-Nicolson move of the coefficients of the model;
    - one indicator changed, or one that is 1 exchanged for one that is 0, and then coefficients
      from the normal approximation of the new model.

    Parameters
    ----------
    x : float array, shape (n, d)
        Covariates.
    y : array, shape (n,)
        Zeros and ones.
    """

    def __init__(self, x: Floats, y: NDArray) -> None:
        self.design = np.column_stack([x, np.ones(len(x))])
        self.y = y
        self.known: dict[bytes, GaussianApproximation] = {}
        log_odds = float(logit(np.mean(y)))
        self.no_effects = np.append(np.zeros(x.shape[1]), log_odds)

    def __call__(self, point: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
        """New point and the log-ratio."""
        d = self.design.shape[1] - 1
        included = point[:d] > 0.5
        if rng.random() < 0.5:
            changed = included
            move = CrankNicolsonProposal(rng.choice(MOVES))
            inside = _inside(included)
            about = self.about(included)
            values, log_ratio, _ = move.propose(about, point[d:][inside], rng)
        else:
            changed = _neighbor(included, rng)
            values, log_ratio = self._jump(point[d:], included, changed, rng)
        new = np.zeros_like(point)
        new[:d] = changed
        new[d:][_inside(changed)] = values
        return new, log_ratio

    def _jump(
        self, coefficients: Floats, old: NDArray, new: NDArray, rng: np.random.Generator
    ) -> tuple[Floats, float]:
        here, there = self.about(old), self.about(new)
        values = there.mean + there.root @ rng.standard_normal(there.mean.size)
        back, forth = _log_density(here, coefficients[_inside(old)]), _log_density(there, values)
        return values, back - forth

    def about(self, included: NDArray) -> GaussianApproximation:
        """Normal approximation of the coefficients of a model, the intercept last."""
        key = included.tobytes()
        if key not in self.known:
            self.known[key] = self._fit(_inside(included))
        return self.known[key]

    def _fit(self, inside: NDArray) -> GaussianApproximation:
        """Newton's method with a little ridge, from no effects."""
        design, ridge = self.design[:, inside], RIDGE * np.eye(int(inside.sum()))
        beta = self.no_effects[inside]
        for _ in range(MOST_STEPS):
            p = expit(design @ beta)
            information = (design.T * (p * (1.0 - p))) @ design + ridge
            step = np.linalg.solve(information, design.T @ (self.y - p) - RIDGE * beta)
            beta = beta + step
            if np.abs(step).max() < 1e-6:
                root = np.linalg.cholesky(np.linalg.inv(information))
                return GaussianApproximation(beta, root)
        raise ArithmeticError("Newton's method does not find the mode of a model.")


def _inside(included: NDArray) -> NDArray:
    """Columns of the design matrix that are in the model, the intercept always."""
    return np.append(included, True)


def _neighbor(included: NDArray, rng: np.random.Generator) -> NDArray:
    """One indicator changed, or two exchanged if there are two; as likely as the way back."""
    new = included.copy()
    ones, zeros = np.flatnonzero(included), np.flatnonzero(~included)
    if rng.random() < 0.5:
        j = rng.integers(included.size)
        new[j] = not new[j]
    elif ones.size and zeros.size:
        new[rng.choice(ones)], new[rng.choice(zeros)] = False, True
    return new


def _log_density(about: GaussianApproximation, point: Floats) -> float:
    """Log-density with its constant, since models differ in dimension."""
    log_scale = float(np.log(np.diag(about.root)).sum()) + _LOG_ROOT_TWO_PI * point.size
    return about.log_density(point) - log_scale
