"""Models with groups as people write them, on simulated data."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pymc.distributions.transforms import ordered

from examples.benchmarks.peers.problems import coin, hierarchical

SIZES = ((100, 20_000), (1_000, 200_000), (10_000, 1_000_000), (100_000, 10_000_000))
"""Groups and rows of the same logistic regression."""

BETWEEN = np.array([-2.0, -0.7, 0.7, 2.0])
"""Ends of the categories of ordinal ratings."""


def intercepts(n_rows: int, n_groups: int) -> pm.Model:
    """Logistic regression with 20 coefficients and an intercept for each group, centered."""
    problem = hierarchical(n_rows, n_groups, 20)
    return problem.model(problem.rows)


def unknown_scale(n_rows: int = 200_000, n_groups: int = 1_000) -> pm.Model:
    """Linear regression with 20 coefficients, an intercept for each group, and unknown scales."""
    rng = np.random.default_rng(4)
    group, x = rng.integers(n_groups, size=n_rows), rng.standard_normal((n_rows, 20))
    slopes, effects = 0.2 * rng.standard_normal(20), rng.normal(0.3, 0.5, size=n_groups)
    y = effects[group] + x @ slopes + rng.normal(0.0, 1.5, size=n_rows)
    with pm.Model() as model:
        center, spread = pm.Normal("center", 0.0, 1.0), pm.HalfNormal("spread", 1.0)
        effect = pm.Normal("effect", center, spread, shape=n_groups)
        slope = pm.Normal("slope", 0.0, 1.0, shape=20)
        pm.Normal("y", effect[group] + x @ slope, pm.HalfNormal("sigma", 5.0), observed=y)
    return model


def not_centered(n_rows: int = 50_000, n_groups: int = 200) -> pm.Model:
    """``y ~ x + (1 | g)`` as Bambi writes it."""
    rng = np.random.default_rng(5)
    group, x = rng.integers(n_groups, size=n_rows), rng.standard_normal(n_rows)
    y = coin(rng, 0.2 + 0.5 * x + rng.normal(0.0, 0.5, size=n_groups)[group])
    with pm.Model() as model:
        intercept, slope = pm.Normal("Intercept", 0.0, 2.0), pm.Normal("x", 0.0, 2.0)
        sigma = pm.HalfNormal("1|g_sigma", 2.0)
        offset = pm.Normal("1|g_offset", 0.0, 1.0, shape=n_groups)
        effect = pm.Deterministic("1|g", offset * sigma)
        pm.Bernoulli("y", logit_p=intercept + slope * x + effect[group], observed=y)
    return model


def counts(n_rows: int = 560_000, n_levels: int = 11) -> pm.Model:
    """Negative binomial counts, few levels with an unknown spread, and an intercept beside them."""
    rng = np.random.default_rng(6)
    level, x = rng.integers(n_levels, size=n_rows), rng.standard_normal((n_rows, 4))
    eta = 0.5 + x @ [0.2, -0.1, 0.1, 0.0] + rng.normal(0.0, 0.4, size=n_levels)[level]
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(eta)))
    with pm.Model() as model:
        intercept, slopes = pm.Normal("intercept", 0.0, 2.0), pm.Normal("slopes", shape=4)
        spread = pm.HalfNormal("spread", 1.0)
        effect = pm.Normal("effect", 0.0, spread, shape=n_levels)
        mu = pm.math.exp(intercept + x @ slopes + effect[level])
        pm.NegativeBinomial("y", mu=mu, alpha=pm.Exponential("alpha", 1.0), observed=y)
    return model


def radon(n_rows: int = 919, n_groups: int = 85) -> pm.Model:
    """Intercepts and slopes that are correlated, and a normal likelihood of unknown scale."""
    rng = np.random.default_rng(7)
    weights = rng.gamma(0.7, size=n_groups)
    group = rng.choice(n_groups, size=n_rows, p=weights / weights.sum())
    floor = (rng.random(n_rows) < 0.17).astype(float)
    effects = rng.multivariate_normal([1.5, -0.7], [[0.11, 0.01], [0.01, 0.09]], size=n_groups)
    y = effects[group, 0] + effects[group, 1] * floor + rng.normal(0.0, 0.75, size=n_rows)
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        mean = pm.Normal("mean", 0.0, 2.0, shape=2)
        effect = pm.MvNormal("effect", mean, chol=chol, shape=(n_groups, 2))
        mu = effect[group, 0] + effect[group, 1] * floor
        pm.Normal("y", mu, pm.Exponential("sigma", 1.0), observed=y)
    return model


def correlated(n_rows: int = 100_000, n_groups: int = 85) -> pm.Model:
    """Logistic intercepts and slopes of 85 groups, correlated."""
    rng = np.random.default_rng(8)
    group, x = rng.integers(n_groups, size=n_rows), rng.standard_normal(n_rows)
    effects = rng.multivariate_normal([0.3, -0.2], [[0.25, 0.05], [0.05, 0.09]], size=n_groups)
    y = coin(rng, effects[group, 0] + effects[group, 1] * x)
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        mean = pm.Normal("mean", 0.0, 2.0, shape=2)
        effect = pm.MvNormal("effect", mean, chol=chol, shape=(n_groups, 2))
        pm.Bernoulli("y", logit_p=effect[group, 0] + effect[group, 1] * x, observed=y)
    return model


def item_response(n_persons: int = 2_000, n_items: int = 50) -> pm.Model:
    """Every person answers every item: abilities and difficulties are crossed."""
    rng = np.random.default_rng(9)
    person, item = np.repeat(np.arange(n_persons), n_items), np.tile(np.arange(n_items), n_persons)
    logit = rng.normal(0.0, 1.0, size=n_persons)[person] - rng.normal(0.3, 1.0, size=n_items)[item]
    y = coin(rng, logit)
    with pm.Model() as model:
        spread, center = pm.HalfNormal("spread", 1.0), pm.Normal("center", 0.0, 1.0)
        ability = pm.Normal("ability", 0.0, 1.0, shape=n_persons)
        difficulty = pm.Normal("difficulty", center, spread, shape=n_items)
        pm.Bernoulli("y", logit_p=ability[person] - difficulty[item], observed=y)
    return model


def crossed(n_users: int = 3_000, n_items: int = 800, n_rows: int = 100_000) -> pm.Model:
    """Two large crossed factors, an intercept and three covariates."""
    rng = np.random.default_rng(12)
    user, item = rng.integers(n_users, size=n_rows), rng.integers(n_items, size=n_rows)
    x = rng.standard_normal((n_rows, 3))
    logit = 0.3 + x @ [0.3, -0.2, 0.1] + rng.normal(0.0, 0.8, size=n_users)[user]
    y = coin(rng, logit + rng.normal(0.0, 0.6, size=n_items)[item])
    with pm.Model() as model:
        of_users, of_items = pm.HalfNormal("of_users", 1.0), pm.HalfNormal("of_items", 1.0)
        intercept, slope = pm.Normal("intercept", 0.0, 2.0), pm.Normal("slope", 0.0, 1.0, shape=3)
        users = pm.Normal("users", 0.0, of_users, shape=n_users)
        items = pm.Normal("items", 0.0, of_items, shape=n_items)
        pm.Bernoulli("y", logit_p=intercept + x @ slope + users[user] + items[item], observed=y)
    return model


def rated(
    kind: str, n_users: int = 5_000, n_items: int = 500, n_rows: int = 1_000_000
) -> dict[str, NDArray]:
    """Ratings of items by users: numbers, five categories (ordinal), or liked or not (binary)."""
    rng = np.random.default_rng(13)
    user, item = rng.integers(n_users, size=n_rows), rng.integers(n_items, size=n_rows)
    eta = 0.3 + rng.normal(0.0, 0.7, size=n_users)[user] + rng.normal(0.0, 0.5, size=n_items)[item]
    if kind == "normal":
        return {"user": user, "item": item, "y": rng.normal(eta)}
    between = BETWEEN if kind == "ordinal" else [0.0]
    return {"user": user, "item": item, "y": np.digitize(eta + rng.logistic(size=n_rows), between)}


def ratings(kind: str, rows: dict[str, NDArray] | None = None) -> pm.Model:
    """An effect of each user and of each item, both of unknown scale."""
    user, item, y = (rows or rated(kind)).values()
    with pm.Model() as model:
        of_users, of_items = pm.HalfNormal("of_users", 1.0), pm.HalfNormal("of_items", 1.0)
        users = pm.Normal("users", 0.0, of_users, shape=int(user.max()) + 1)
        items = pm.Normal("items", 0.0, of_items, shape=int(item.max()) + 1)
        total = users[user] + items[item]
        if kind == "ordinal":
            cut = pm.Normal("cut", 0.0, 3.0, shape=4, transform=ordered, initval=BETWEEN)
            pm.OrderedLogistic("y", total, cut, observed=y, compute_p=False)
            return model
        total = pm.Normal("intercept", 0.0, 2.0) + total
        if kind == "normal":
            pm.Normal("y", total, pm.HalfNormal("sigma", 2.0), observed=y)
        else:
            pm.Bernoulli("y", logit_p=total, observed=y)
    return model


def poststratification(n_rows: int = 100_000) -> pm.Model:
    """A survey with six crossed factors, the states within regions."""
    rng = np.random.default_rng(10)
    sizes = {
        "state": 50,
        "age": 6,
        "education": 5,
        "race": 4,
        "age_education": 30,
        "state_race": 200,
    }
    state, age, education, race = (
        rng.integers(sizes[name], size=n_rows) for name in ("state", "age", "education", "race")
    )
    index = {
        "state": state,
        "age": age,
        "education": education,
        "race": race,
        "age_education": 5 * age + education,
        "state_race": 4 * state + race,
    }
    spreads = {"state": 0.3, "age": 0.4, "education": 0.2, "race": 0.4}
    eta = 0.1 + sum(
        rng.normal(0.0, spreads.get(name, 0.15), size=size)[index[name]]
        for name, size in sizes.items()
    )
    with pm.Model() as model:
        total = pm.Normal("intercept", 0.0, 1.0)
        for name, size in sizes.items():
            spread = pm.HalfNormal(f"spread_{name}", 1.0)
            total = total + pm.Normal(name, 0.0, spread, shape=size)[index[name]]
        pm.Bernoulli("y", logit_p=total, observed=coin(rng, eta))
    return model


def few_rows(rows_per_group: int, n_groups: int = 250) -> pm.Model:
    """Few rows tell of each of many groups."""
    rng = np.random.default_rng(11)
    group = np.repeat(np.arange(n_groups), rows_per_group)
    y = coin(rng, rng.normal(0.3, 0.5, size=n_groups)[group])
    with pm.Model() as model:
        center, spread = pm.Normal("center", 0.0, 1.0), pm.HalfNormal("spread", 1.0)
        effect = pm.Normal("effect", center, spread, shape=n_groups)
        pm.Bernoulli("y", logit_p=effect[group], observed=y)
    return model


GROUPED_MODELS: dict[str, Callable[[], pm.Model]] = {
    **{f"{n_groups:,} groups": partial(intercepts, n_rows, n_groups) for n_groups, n_rows in SIZES},
    "unknown scale": unknown_scale,
    "not centered": not_centered,
    "counts": counts,
    "radon": radon,
    "correlated": correlated,
    "item response": item_response,
    "crossed": crossed,
    "ratings": partial(ratings, "normal"),
    "ordinal ratings": partial(ratings, "ordinal"),
    "poststratification": poststratification,
    "2 rows": lambda: few_rows(2),
    "5 rows": lambda: few_rows(5),
    "20 rows": lambda: few_rows(20),
}
"""Names and models; the first are those of `SIZES`."""
