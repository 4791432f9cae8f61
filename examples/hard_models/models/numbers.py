"""Numbers at the ends of what floating point holds."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.special import gammaln

from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard

_TINY = 1e-200


def _tiny_data() -> NDArray:
    return np.random.default_rng(81).normal(1.0, 1.0, size=200)


def _tiny_answer() -> dict[str, Moments]:
    """Normal rows whose priors are flat at the scale of the posterior, in closed form."""
    y = _tiny_data()
    n, half_squares = y.size, ((y - y.mean()) ** 2).sum() / 2.0
    shape = (n - 2.0) / 2.0  # sigma^-2 given the rows is Gamma(shape, half_squares)
    mean = np.sqrt(half_squares) * np.exp(gammaln(shape - 0.5) - gammaln(shape))
    second = half_squares / (shape - 1.0)
    return {
        "mu": Moments(_TINY * y.mean(), _TINY * float(np.sqrt(second / n))),
        "sigma": Moments(_TINY * float(mean), _TINY * float(np.sqrt(second - mean**2))),
    }


@hard(_tiny_answer)
def tiny_responses() -> None:
    """Responses of 1e-200, with mean and spread unknown."""
    mu, sigma = pm.Normal("mu", 0.0, 1.0), pm.HalfNormal("sigma", 1.0)
    pm.Normal("y", mu, sigma, observed=_TINY * _tiny_data())


def _tiny_column_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(82)
    return _TINY * rng.normal(size=1_000), rng.normal(1.0, 1.0, size=1_000)


def _tiny_column_answer() -> dict[str, Moments]:
    _, y = _tiny_column_data()
    precision = y.size + 1.0
    return {"a": Moments(y.sum() / precision, precision**-0.5), "b": Moments(0.0, 1.0)}


@hard(_tiny_column_answer)
def tiny_column() -> None:
    """A column of 1e-200, about whose coefficient the rows say nothing."""
    x, y = _tiny_column_data()
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
    pm.Normal("y", a + b * x, 1.0, observed=y)


def _with_huge(size: int) -> NDArray:
    y = np.random.default_rng(83).normal(size=size)
    y[3] = 1e308
    return y


@hard(None)
def one_huge_response() -> None:
    """One response of 1e308, whose square is not a number: the log-density is minus infinity."""
    pm.Normal("y", pm.Normal("mu", 0.0, 1.0), 1.0, observed=_with_huge(1_000))


@hard(None)
def one_huge_entry() -> None:
    """One entry of 1e308 in a column of a Poisson regression, which overflows nearly everywhere."""
    x = _with_huge(1_000)
    b = pm.Normal("b", 0.0, 1.0)
    pm.Poisson("y", pm.math.exp(b * x), observed=np.ones(1_000, dtype=np.int64))


def _far_data() -> NDArray:
    return np.random.default_rng(84).normal(1e6, 1.0, size=2_000)


def _far_answer() -> dict[str, Moments]:
    y = _far_data()
    mean, squares = y.mean(), ((y - y.mean()) ** 2).sum()

    def log_density(mu: NDArray, sigma: NDArray) -> NDArray:
        rows = -0.5 * (squares + y.size * (mean - mu) ** 2) / sigma**2 - y.size * np.log(sigma)
        return (rows - 0.5 * (mu**2 / 1e14 + sigma**2 / 4.0))[:, 0]

    return quadrature(log_density, {"mu": (mean - 5.0, mean + 5.0), "sigma": (0.1, 5.0)})


@hard(_far_answer)
def far_from_the_start() -> None:
    """Rows about a million, with a prior that starts the chain at zero."""
    mu, sigma = pm.Normal("mu", 0.0, 1e7), pm.HalfNormal("sigma", 2.0)
    pm.Normal("y", mu, sigma, observed=_far_data())
