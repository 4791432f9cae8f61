"""Columns that are collinear or unscaled, classes that are separated, and very few rows."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.hard_models.moments import Moments, gaussian, quadrature
from examples.hard_models.registry import hard


def _logistic_answer(
    x: NDArray, y: NDArray, sds: tuple[float, float], bounds: tuple[float, float], size: int = 121
) -> dict[str, Moments]:
    def log_density(a: NDArray, b: NDArray) -> NDArray:
        log_likelihood = (a * y.sum() + b * (x @ y))[:, 0]
        log_likelihood -= np.logaddexp(0.0, a + b * x).sum(axis=1)
        return log_likelihood - 0.5 * ((a / sds[0]) ** 2 + (b / sds[1]) ** 2)[:, 0]

    return quadrature(log_density, {"a": bounds, "b": bounds}, size=size)


def _separated_data() -> tuple[NDArray, NDArray]:
    x = np.random.default_rng(71).normal(size=1_000)
    return x, (x > 0.3).astype(int)


@hard(lambda: _logistic_answer(*_separated_data(), (10.0, 10.0), (-150.0, 150.0), 201))
def separated_classes() -> None:
    """Logistic regression whose classes a line separates, with a wide prior."""
    x, y = _separated_data()
    a, b = pm.Normal("a", 0.0, 10.0), pm.Normal("b", 0.0, 10.0)
    pm.Bernoulli("y", logit_p=a + b * x, observed=y)


_FIVE = np.array([-1.2, -0.4, 0.1, 0.7, 1.5]), np.array([0, 0, 1, 0, 1])


@hard(lambda: _logistic_answer(*_FIVE, (2.0, 2.0), (-20.0, 20.0)))
def five_rows() -> None:
    """Logistic regression on five rows."""
    a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0)
    pm.Bernoulli("y", logit_p=a + b * _FIVE[0], observed=_FIVE[1])


def _two_rows_answer() -> dict[str, Moments]:
    y = np.array([0.4, 1.1])

    def log_density(mu: NDArray, sigma: NDArray) -> NDArray:
        rows = -0.5 * (((y - mu) / sigma) ** 2).sum(axis=1) - 2.0 * np.log(sigma[:, 0])
        return rows - 0.5 * (mu**2 + sigma**2)[:, 0]

    bounds = {"mu": (-8.0, 8.0), "sigma": (1e-3, 8.0)}
    return quadrature(log_density, bounds, size=801, zooms=0)


@hard(_two_rows_answer)
def two_rows() -> None:
    """Mean and spread of two rows."""
    mu, sigma = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("sigma", 1.0)
    pm.Normal("y", mu, sigma, observed=np.array([0.4, 1.1]))


@hard(lambda: {"mu": Moments(0.6, 0.5**0.5)})
def one_row() -> None:
    """The mean of one row."""
    pm.Normal("y", pm.Normal("mu", 0.0, 1.0), 1.0, observed=np.array([1.2]))


def _unscaled_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(72)
    x = rng.normal(size=(5_000, 3)) * np.array([1e-3, 1.0, 1e4])
    return x, rng.normal(x @ np.array([5.0, 1.0, 1e-4]), 1.0)


@hard(lambda: gaussian("beta", *_unscaled_data(), prior_sd=10.0))
def unscaled_columns() -> None:
    """Columns of scales 0.001, 1 and 10,000."""
    x, y = _unscaled_data()
    beta = pm.Normal("beta", 0.0, 10.0, shape=3)
    pm.Normal("y", x @ beta, 1.0, observed=y)


def _collinear_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(73)
    first = rng.normal(size=5_000)
    x = np.stack([first, first + 0.003 * rng.normal(size=5_000)], axis=1)
    return x, rng.normal(x.sum(axis=1), 1.0)


@hard(lambda: gaussian("beta", *_collinear_data(), prior_sd=10.0))
def collinear_columns() -> None:
    """Two columns with a correlation of 0.999995."""
    x, y = _collinear_data()
    beta = pm.Normal("beta", 0.0, 10.0, shape=2)
    pm.Normal("y", x @ beta, 1.0, observed=y)


def _duplicate_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(74)
    x = rng.normal(size=(2_000, 2))[:, [0, 0, 1]]
    return x, (rng.random(2_000) < 1.0 / (1.0 + np.exp(-x.sum(axis=1)))).astype(int)


def _duplicate_answer() -> dict[str, Moments]:
    """The rows see the sum of two coefficients; their difference keeps its prior."""
    x, y = _duplicate_data()
    ones, other = x[:, 0], x[:, 2]

    def log_density(total: NDArray, b: NDArray) -> NDArray:
        log_likelihood = (total * (ones @ y) + b * (other @ y))[:, 0]
        log_likelihood -= np.logaddexp(0.0, total * ones + b * other).sum(axis=1)
        return log_likelihood - 0.5 * (total**2 / 8.0 + b**2 / 4.0)[:, 0]

    found = quadrature(log_density, {"total": (-5.0, 10.0), "b": (-5.0, 5.0)}, size=61, zooms=6)
    total = found["total"]
    half = Moments(total.mean / 2.0, (total.sd**2 + 8.0) ** 0.5 / 2.0)
    return {"beta[0]": half, "beta[1]": half, "beta[2]": found["b"]}


@hard(_duplicate_answer)
def duplicate_columns() -> None:
    """Logistic regression on two equal columns and a third."""
    x, y = _duplicate_data()
    beta = pm.Normal("beta", 0.0, 2.0, shape=3)
    pm.Bernoulli("y", logit_p=(x * beta).sum(axis=1), observed=y)
