"""Hierarchical models: parameters of groups, read through an index per row."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.registry import N_CATEGORIES, N_COLUMNS, N_GROUPS, N_TIMES, Data, works


@works(predictors=1)
def intercepts_and_slopes(d: Data) -> None:
    """Group effects with dims."""
    pm.modelcontext(None).add_coord("group", range(N_GROUPS))
    a = pm.Normal("a", pm.Normal("mu"), pm.HalfNormal("sd"), dims="group")
    b = pm.Normal("b", dims="group")
    pm.Normal("y", a[d.group] + b[d.group] * d.X[:, 0], 1.0, observed=d.eta)


@works(predictors=3)
def non_centered_two_levels(d: Data) -> None:
    """Effects of groups within regions, computed from standard normal ones."""
    region = d.rng.integers(0, 3, N_GROUPS)
    level, sd = pm.Normal("level", shape=3), pm.HalfNormal("sd")
    a = pm.Deterministic("a", level[region] + sd * pm.Normal("z", shape=N_GROUPS))
    mu = pm.Deterministic("mu", a[d.group] + d.X @ np.array([0.1, 0.2, 0.3]))
    pm.Bernoulli("y", logit_p=mu, observed=d.binary())


@works(predictors=1)
def two_indices(d: Data) -> None:
    """A table of effects read by two indices."""
    table = pm.Normal("table", shape=(N_GROUPS, N_CATEGORIES))
    pm.Normal("y", table[d.group, d.categories()], 1, observed=d.eta)


@works(predictors=1)
def slopes_by_group(d: Data) -> None:
    """A vector of coefficients for every group."""
    B = pm.Normal("B", shape=(N_GROUPS, N_COLUMNS))
    pm.Normal("y", (d.X * B[d.group]).sum(axis=-1), 1, observed=d.eta)


@works(predictors=3)
def monotone_effect(d: Data) -> None:
    """An ordered predictor with unknown shares of its effect."""
    shares = pm.Dirichlet("shares", np.ones(3))
    effect = pt.concatenate([np.zeros(1, dtype=d.X.dtype), pt.cumsum(shares)])
    pm.Normal("y", pm.Normal("b") * effect[d.categories()], 1, observed=d.eta)


@works(predictors=5)
def correlated_effects(d: Data) -> None:
    """Intercepts and slopes with an LKJ prior on their correlation."""
    sd = pm.Exponential.dist(1.0, shape=2)
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=sd)
    ab = pt.dot(chol, pm.Normal("z", shape=(N_GROUPS, 2)).T).T
    pm.Normal("y", ab[d.group, 0] + ab[d.group, 1] * d.X[:, 0], 1, observed=d.eta)


@works(predictors=1)
def zero_sum_effects(d: Data) -> None:
    """Group effects that sum to zero."""
    pm.Normal("y", pm.ZeroSumNormal("a", shape=N_GROUPS)[d.group], 1.0, observed=d.eta)


@works(predictors=1)
def binomial_by_group_and_time(d: Data) -> None:
    """Group effects over rows by times."""
    a, t = pm.Normal("a", shape=N_GROUPS), pm.Normal("t", shape=N_TIMES)
    n = d.rng.integers(3, 6, (d.n, N_TIMES))
    y = d.rng.integers(0, 3, (d.n, N_TIMES))
    pm.Binomial("y", n=n, logit_p=a[d.group, None] + t, observed=y)


@works(predictors=2)
def item_response(d: Data) -> None:
    """Two-parameter item response: persons and items, crossed."""
    item = d.categories()
    pm.modelcontext(None).add_coords({"item": range(N_CATEGORIES), "person": range(N_GROUPS)})
    ability = pm.Normal("ability", dims="person")
    slope, difficulty = pm.LogNormal("slope", dims="item"), pm.Normal("difficulty", dims="item")
    logit = slope[item] * (ability[d.group] - difficulty[item])
    pm.Bernoulli("y", logit_p=logit, observed=d.binary())
