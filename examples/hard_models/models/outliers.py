"""Heavy tails, outliers and leverage."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy import stats

from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard


def _cauchy_data() -> NDArray:
    return 1.0 + 0.5 * np.random.default_rng(61).standard_cauchy(size=5_000)


def _cauchy_answer() -> dict[str, Moments]:
    y = _cauchy_data()

    def log_density(mu: NDArray, scale: NDArray) -> NDArray:
        rows = -np.log1p(((y - mu) / scale) ** 2).sum(axis=1) - y.size * np.log(scale[:, 0])
        return rows - 0.5 * (mu**2 / 100.0 + scale**2)[:, 0]

    return quadrature(log_density, {"mu": (-5.0, 5.0), "scale": (0.01, 5.0)}, size=61)


@hard(_cauchy_answer)
def cauchy_noise() -> None:
    """Noise without a variance: location and scale of Cauchy rows."""
    mu, scale = pm.Normal("mu", 0.0, 10.0), pm.HalfNormal("scale", 1.0)
    pm.Cauchy("y", mu, scale, observed=_cauchy_data())


def _cauchy_column_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(62)
    x = rng.standard_cauchy(size=5_000)
    with np.errstate(over="ignore"):
        return x, (rng.random(5_000) < 1.0 / (1.0 + np.exp(1.0 - 0.5 * x))).astype(int)


def _cauchy_column_answer() -> dict[str, Moments]:
    x, y = _cauchy_column_data()

    def log_density(a: NDArray, b: NDArray) -> NDArray:
        log_likelihood = (a * y.sum() + b * (x @ y))[:, 0]
        log_likelihood -= np.logaddexp(0.0, a + b * x).sum(axis=1)
        return log_likelihood - 0.5 * (a[:, 0] ** 2 + b[:, 0] ** 2)

    return quadrature(log_density, {"a": (-5.0, 5.0), "b": (-5.0, 5.0)}, size=61)


@hard(_cauchy_column_answer)
def cauchy_column() -> None:
    """Logistic regression on a column with entries in the thousands."""
    x, y = _cauchy_column_data()
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
    pm.Bernoulli("y", logit_p=a + b * x, observed=y)


def _leverage_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(63)
    x = rng.normal(size=5_000)
    x[1_000] = 1_000.0
    return x, x + stats.t(4.0).rvs(size=5_000, random_state=rng)


def _leverage_answer() -> dict[str, Moments]:
    x, y = _leverage_data()

    def log_density(a: NDArray, b: NDArray) -> NDArray:
        rows = -2.5 * np.log1p((y - a - b * x) ** 2 / 4.0)
        return rows.sum(axis=1) - 0.5 * (a[:, 0] ** 2 + b[:, 0] ** 2)

    return quadrature(log_density, {"a": (-3.0, 3.0), "b": (0.99, 1.01)}, size=81)


@hard(_leverage_answer)
def one_row_with_leverage() -> None:
    """A robust regression in which one row has a thousand times the leverage of the others."""
    x, y = _leverage_data()
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
    pm.StudentT("y", nu=4.0, mu=a + b * x, sigma=1.0, observed=y)


def _unknown_tails_data() -> NDArray:
    return np.random.default_rng(64).normal(size=1_000)


def _unknown_tails_answer() -> dict[str, Moments]:
    y = _unknown_tails_data()

    def log_density(nu: NDArray, sigma: NDArray) -> NDArray:
        rows = stats.t.logpdf(y, nu, scale=sigma).sum(axis=1)
        return rows + (np.log(nu) - 0.1 * nu - 0.5 * sigma**2)[:, 0]

    return quadrature(log_density, {"nu": (1.0, 250.0), "sigma": (0.5, 2.0)}, size=81, zooms=4)


@hard(_unknown_tails_answer)
def unknown_degrees_of_freedom() -> None:
    """Student-t rows that are normal: the degrees of freedom have a long tail."""
    nu, sigma = pm.Gamma("nu", 2.0, 0.1), pm.HalfNormal("sigma", 1.0)
    pm.StudentT("y", nu=nu, mu=0.0, sigma=sigma, observed=_unknown_tails_data())
