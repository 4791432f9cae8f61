"""Generalised linear models in plain NumPy, behind the contracts that the package compiles to."""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from pymc_austerity.control_variates import RowDensity
from pymc_austerity.model import Derivatives
from pymc_austerity.rows import ArrayRows


def normal(eta, y):
    """Log-likelihood with unit variance, and its first two derivatives by the predictor."""
    return -0.5 * (y - eta) ** 2, y - eta, -np.ones_like(eta)


def logistic(eta, y):
    p = expit(eta)
    return -np.logaddexp(0.0, (1 - 2 * y) * eta), y - p, -p * (1 - p)


def poisson(eta, y):
    mean = np.exp(eta)
    return y * eta - mean, y - mean, -mean


@dataclass
class Regression:
    """Rows ``(X, y)``, coefficients with independent normal(0, prior_precision^-1/2) priors.

    `passes` counts the rows read for values and gradients, `curvatures` those for Hessians, both
    in units of all rows.
    """

    family: object
    X: np.ndarray
    y: np.ndarray
    prior_precision: float = 1.0
    passes: float = field(default=0.0)
    curvatures: float = field(default=0.0)

    @property
    def start(self):
        return np.zeros(self.X.shape[1])

    @property
    def source(self):
        return ArrayRows([self.X, self.y])

    @property
    def rows(self):
        return Derivatives(self.row_gradient, self.row_hessian)

    @property
    def exact(self):
        precision = self.prior_precision
        return Derivatives(
            lambda point: [-0.5 * precision * point @ point, -precision * point],
            lambda point: -precision * np.eye(point.size),
        )

    @property
    def known(self):
        """What searches of its mode are given."""
        return self.start, self.posterior

    @property
    def posterior(self):
        parts = [(self.source, 1.0)]
        return RowDensity(self.rows, self.exact, self.differences, parts, self.start.dtype)

    def row_gradient(self, point, X, y):
        self.passes += y.size / self.y.size
        value, first, _ = self.family(X @ point, y)
        return [value.sum(), X.T @ first]

    def row_hessian(self, point, X, y):
        self.curvatures += y.size / self.y.size
        return (X * self.family(X @ point, y)[2][:, None]).T @ X

    def differences(self, proposed, current, X, y):
        return self.family(X @ proposed, y)[0] - self.family(X @ current, y)[0]

    def row_gradients(self, point):
        return self.family(self.X @ point, self.y)[1][:, None] * self.X

    def row_hessians(self, point):
        second = self.family(self.X @ point, self.y)[2]
        return np.einsum("n,nj,nk->njk", second, self.X, self.X)

    def hessian(self, point):
        """Of the rows."""
        second = self.family(self.X @ point, self.y)[2]
        return (self.X * second[:, None]).T @ self.X

    def precision(self, point):
        """Minus the Hessian of the log-posterior."""
        return -self.hessian(point) + self.prior_precision * np.eye(point.size)

    def mode(self):
        """By SciPy, polished by Newton's method."""

        def negative(point):
            value, first, _ = self.family(self.X @ point, self.y)
            gradient = self.X.T @ first - self.prior_precision * point
            return -value.sum() + 0.5 * self.prior_precision * point @ point, -gradient

        point = minimize(negative, self.start, jac=True, method="BFGS").x
        for _ in range(20):
            point = point - np.linalg.solve(self.precision(point), negative(point)[1])
        return point


def simulate(family, n_rows, rng, coefficients=(0.5, -0.3, 0.2), X=None):
    """Data of a family with standard normal covariates, or given ones."""
    coefficients = np.asarray(coefficients)
    X = rng.normal(size=(n_rows, coefficients.size)) if X is None else X
    eta = X @ coefficients
    if family is normal:
        y = eta + rng.normal(size=n_rows)
    elif family is logistic:
        y = (rng.random(n_rows) < expit(eta)).astype(float)
    else:
        y = rng.poisson(np.exp(eta)).astype(float)
    return Regression(family, X, y)
