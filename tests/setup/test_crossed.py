"""Two factors, both too large to be moved at once, against the exact posterior."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.special import softmax

from pymc_austerity import GroupedMH
from tests.running import built, draws_of, sample

N, USERS, ITEMS = 4_000, 320, 305
RNG = np.random.default_rng(5)
USER, ITEM, X = RNG.integers(USERS, size=N), RNG.integers(ITEMS, size=N), RNG.normal(size=N)
EFFECTS = RNG.normal(0.0, 0.8, size=USERS)[USER] + RNG.normal(0.0, 0.5, size=ITEMS)[ITEM]
Y = 0.3 + 0.2 * X + EFFECTS + RNG.normal(size=N)
SPREAD_USERS = 0.8


def ratings():
    with pm.Model() as model:
        intercept, slope = pm.Normal("intercept", 0.0, 2.0), pm.Normal("slope", 0.0, 1.0)
        users = pm.Normal("users", 0.0, SPREAD_USERS, shape=USERS)
        items = pm.Normal("items", 0.0, pm.HalfNormal("spread", 1.0), shape=ITEMS)
        pm.Normal("y", intercept + slope * X + users[USER] + items[ITEM], 1.0, observed=Y)
    return model


def summaries(points):
    """What is compared, shape (..., 7), of intercept, slope, users and items."""
    users, items = points[..., 2 : 2 + USERS], points[..., 2 + USERS :]
    means = [users.mean(axis=-1), items.mean(axis=-1)]
    return np.stack([*np.moveaxis(points[..., :4], -1, 0), items[..., 0], *means], axis=-1)


def exact_moments():
    """Of the spread and the summaries: normal given the spread, which is summed over a grid."""
    design = np.zeros((N, 2 + USERS + ITEMS))
    design[:, 0], design[:, 1] = 1.0, X
    design[np.arange(N), 2 + USER], design[np.arange(N), 2 + USERS + ITEM] = 1.0, 1.0
    gram, slope = design.T @ design, design.T @ Y
    read = summaries(np.eye(design.shape[1])).T
    spreads, found = np.linspace(0.3, 0.8, 26), []
    for spread in spreads:
        prior = np.repeat([0.25, 1.0, SPREAD_USERS**-2, spread**-2], [1, 1, USERS, ITEMS])
        covariance = np.linalg.inv(gram + np.diag(prior))
        mean = covariance @ slope
        log_density = 0.5 * (slope @ mean + np.linalg.slogdet(covariance)[1])
        log_density -= ITEMS * np.log(spread) + 0.5 * spread**2
        given = read @ mean, np.diag(read @ covariance @ read.T)
        found.append((log_density, np.append(spread, given[0]), np.append(0.0, given[1])))
    log_density, means, variances = (np.array(each) for each in zip(*found, strict=True))
    weights = softmax(log_density)
    assert max(weights[0], weights[-1]) < 1e-6
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)


@pytest.mark.exhaustive
def test_two_large_factors_follow_their_posterior():
    its = ratings()
    step = built(its, GroupedMH)
    sweep = step.target.sweep
    assert sweep.joint.entries.size == 2 + ITEMS
    assert sweep.exchange.fields.n_directions == 2
    draws = draws_of(sample(step, its, draws=600, tune=300, chains=1))
    names = ("intercept", "slope", "users", "items")
    points = [draws[n][..., None] if draws[n].ndim == 2 else draws[n] for n in names]
    values = summaries(np.concatenate(points, axis=-1))
    values = np.concatenate([draws["spread"][..., None], values], axis=-1)
    mean, variance = exact_moments()
    for k in range(mean.size):
        for one, expected in (
            (values[..., k], mean[k]),
            ((values[..., k] - mean[k]) ** 2, variance[k]),
        ):
            n_effective = float(az.ess(one))
            assert n_effective > 60.0
            assert abs(one.mean() - expected) < 4.5 * one.std() / np.sqrt(n_effective)
