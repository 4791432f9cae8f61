"""Several modes, ridges and valleys."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard


def _square_data() -> NDArray:
    return np.random.default_rng(11).normal(1.0, 1.0, size=1_000)


def _square_answer() -> dict[str, Moments]:
    y = _square_data()

    def log_density(a: NDArray) -> NDArray:
        return (-0.5 * y.size * (y.mean() - a**2) ** 2 - 0.5 * a**2)[:, 0]

    return quadrature(log_density, {"a": (-4.0, 4.0)}, size=2_001)


@hard(_square_answer)
def square() -> None:
    """Rows y ~ N(a^2, 1): two modes, a and -a."""
    a = pm.Normal("a", 0.0, 1.0)
    pm.Normal("y", a**2, 1.0, observed=_square_data())


def _product_data() -> NDArray:
    return np.random.default_rng(12).normal(1.0, 1.0, size=1_000)


def _product_answer() -> dict[str, Moments]:
    y = _product_data()

    def log_density(a: NDArray, b: NDArray) -> NDArray:
        squares = y.size * (y.mean() - a * b) ** 2 + a**2 + b**2
        return -0.5 * squares[:, 0]

    return quadrature(log_density, {"a": (-6.0, 6.0), "b": (-6.0, 6.0)}, size=1_201, zooms=0)


@hard(_product_answer)
def product() -> None:
    """Rows y ~ N(a b, 1): two curved ridges."""
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
    pm.Normal("y", a * b, 1.0, observed=_product_data())


def _sine_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(13)
    x = rng.uniform(0.0, 10.0, size=2_000)
    return x, rng.normal(np.sin(2.0 * x), 1.5)


def _sine_answer() -> dict[str, Moments]:
    x, y = _sine_data()

    def log_density(frequency: NDArray) -> NDArray:
        squares = ((y - np.sin(frequency * x)) ** 2).sum(axis=1) / 1.5**2
        return -0.5 * (squares + (frequency[:, 0] - 2.0) ** 2)

    return quadrature(log_density, {"frequency": (0.0, 5.0)}, size=2_001, zooms=3)


@hard(_sine_answer)
def sine_in_the_wrong_trough() -> None:
    """A sine regression whose start lies at a local mode, hundreds of nats below the other."""
    x, y = _sine_data()
    frequency = pm.Normal("frequency", 2.0, 1.0, initval=2.77)
    pm.Normal("y", pm.math.sin(frequency * x), 1.5, observed=y)


def _two_clumps_data() -> NDArray:
    return np.repeat([-8.0, 8.0], 5) + np.tile([-1.0, -0.5, 0.0, 0.5, 1.0], 2)


def _two_clumps_answer() -> dict[str, Moments]:
    y = _two_clumps_data()

    def log_density(mu: NDArray) -> NDArray:
        return -np.log1p((y - mu) ** 2).sum(axis=1) - 0.5 * mu[:, 0] ** 2 / 400.0

    return quadrature(log_density, {"mu": (-30.0, 30.0)}, size=6_001, zooms=0)


@hard(_two_clumps_answer)
def two_clumps() -> None:
    """The location of Cauchy noise where ten rows lie in two clumps far apart."""
    mu = pm.Normal("mu", 0.0, 20.0)
    pm.Cauchy("y", mu, 1.0, observed=_two_clumps_data())


def _mixture_data() -> NDArray:
    rng = np.random.default_rng(14)
    return np.where(
        rng.random(1_000) < 0.3, rng.normal(-1.0, 1.0, 1_000), rng.normal(1.5, 1.0, 1_000)
    )


def _mixture_answer() -> dict[str, Moments]:
    y = _mixture_data()

    def log_density(share: NDArray, low: NDArray, high: NDArray) -> NDArray:
        parts = (
            share * np.exp(-0.5 * (y - low) ** 2),
            (1.0 - share) * np.exp(-0.5 * (y - high) ** 2),
        )
        rows = np.log(parts[0] + parts[1]).sum(axis=1)
        prior = np.log(share * (1.0 - share)) - 0.5 * (low**2 + high**2) / 4.0
        return np.where(low < high, prior, -np.inf)[:, 0] + rows

    bounds = {"share": (0.01, 0.99), "means[0]": (-3.0, 3.0), "means[1]": (-3.0, 3.0)}
    return quadrature(log_density, bounds, size=41, zooms=4)


@hard(_mixture_answer)
def mixture_of_two() -> None:
    """A mixture of two overlapping normal distributions with unknown means and shares."""
    share = pm.Beta("share", 2.0, 2.0)
    means = pm.Normal(
        "means",
        0.0,
        2.0,
        shape=2,
        transform=pm.distributions.transforms.ordered,
        initval=np.array([-1.0, 1.0]),
    )
    weights = pm.math.stack([share, 1.0 - share])
    pm.NormalMixture("y", w=weights, mu=means, sigma=1.0, observed=_mixture_data())


def _ridge_data() -> NDArray:
    return np.random.default_rng(15).normal(2.0, 1.0, size=5_000)


def _ridge_answer() -> dict[str, Moments]:
    y, prior_precision = _ridge_data(), 1e-2
    precision = np.full((2, 2), float(y.size)) + prior_precision * np.eye(2)
    covariance = np.linalg.inv(precision)
    mean = covariance @ np.full(2, y.sum())
    sd = np.sqrt(np.diag(covariance))
    return {name: Moments(float(m), float(s)) for name, m, s in zip("ab", mean, sd, strict=True)}


@hard(_ridge_answer)
def only_the_sum_is_known() -> None:
    """Rows y ~ N(a + b, 1) that say nothing about the difference of a and b."""
    a, b = pm.Normal("a", 0.0, 10.0), pm.Normal("b", 0.0, 10.0)
    pm.Normal("y", a + b, 1.0, observed=_ridge_data())
