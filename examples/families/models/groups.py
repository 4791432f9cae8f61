"""Groups, crossed and nested, in the forms in which they are written."""

import numpy as np
import pymc as pm

from examples.benchmarks.grouped_models import correlated, item_response, poststratification
from examples.families.models.data import N_ROWS, coin, columns
from examples.families.registry import add, family

add(
    "correlated_slopes",
    "Logistic intercepts and slopes of 40 groups, correlated (LKJ)",
    lambda: correlated(N_ROWS, 40),
)
add(
    "item_response",
    "Item response: 500 persons, 40 items",
    lambda: item_response(500, 40),
)
add(
    "poststratification",
    "Regression for post-stratification (MRP): six crossed factors",
    lambda: poststratification(N_ROWS),
    nuts_draws=2_000,
)


@family()
def radon() -> None:
    """Radon: 919 rows, 85 counties, correlated intercepts and slopes (LKJ), non-centered."""
    rng = np.random.default_rng(30)
    weights = rng.gamma(0.7, size=85)
    county = rng.choice(85, size=919, p=weights / weights.sum())
    floor = (rng.random(919) < 0.17).astype(float)
    effects = rng.multivariate_normal([1.5, -0.7], [[0.11, 0.01], [0.01, 0.09]], size=85)
    y = effects[county, 0] + effects[county, 1] * floor + rng.normal(0.0, 0.75, size=919)
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    mean, z = pm.Normal("mean", 0.0, 2.0, shape=2), pm.Normal("z", shape=(85, 2))
    effect = mean + z @ chol.T
    mu = effect[county, 0] + effect[county, 1] * floor
    pm.Normal("y", mu, pm.Exponential("sigma", 1.0), observed=y)


@family()
def two_parameter_item_response() -> None:
    """Item response with discriminations (2PL): 500 persons, 40 items."""
    rng = np.random.default_rng(31)
    person, item = np.repeat(np.arange(500), 40), np.tile(np.arange(40), 500)
    ability, easiness = rng.standard_normal(500), rng.standard_normal(40)
    slope = rng.lognormal(0.0, 0.3, size=40)
    y = coin(rng, slope[item] * ability[person] + easiness[item])
    z, e = pm.Normal("ability", shape=500), pm.Normal("easiness", 0.0, 1.5, shape=40)
    a = pm.LogNormal("discrimination", 0.0, 0.5, shape=40)
    pm.Bernoulli("y", logit_p=a[item] * z[person] + e[item], observed=y)


@family()
def counts_of_groups() -> None:
    """Poisson regression with 300 groups, non-centered."""
    rng, x, eta = columns(32)
    group = rng.integers(300, size=N_ROWS)
    y = rng.poisson(np.exp(eta + rng.normal(0.0, 0.4, size=300)[group]))
    a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0, shape=x.shape[1])
    tau, z = pm.HalfNormal("tau", 1.0), pm.Normal("z", shape=300)
    pm.Poisson("y", pm.math.exp(a + x @ b + tau * z[group]), observed=y)


@family()
def effects_that_sum_to_zero() -> None:
    """Logistic regression with 12 effects that sum to zero (ZeroSumNormal)."""
    rng, x, eta = columns(33)
    group = rng.integers(12, size=N_ROWS)
    y = coin(rng, eta + np.linspace(-0.5, 0.5, 12)[group])
    a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0, shape=x.shape[1])
    effect = pm.ZeroSumNormal("effect", pm.HalfNormal("tau", 1.0), shape=12)
    pm.Bernoulli("y", logit_p=a + x @ b + effect[group], observed=y)


@family()
def an_effect_for_each_row() -> None:
    """Overdispersed Poisson counts, an effect for each of 2,000 rows."""
    rng, x, eta = columns(34)
    x, eta = x[:2_000], eta[:2_000]
    y = rng.poisson(np.exp(eta + rng.normal(0.0, 0.5, size=2_000)))
    a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0, shape=x.shape[1])
    effect = pm.Normal("effect", 0.0, pm.HalfNormal("tau", 1.0), shape=2_000)
    pm.Poisson("y", pm.math.exp(a + x @ b + effect), observed=y)
