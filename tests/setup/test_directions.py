"""Directions along which crossed factors depend on each other, and moves along them."""

import numpy as np
import pymc as pm
import pytest
from scipy import sparse
from scipy.linalg import eigh

from pymc_austerity import GroupedMH
from pymc_austerity.levels.joint import move_jointly
from pymc_austerity.setup.levels import directions
from tests.running import built

N, USERS, ITEMS, TAGS = 3_000, 70, 60, 40
RNG = np.random.default_rng(11)


def three_factors():
    """A normal posterior, as scales are known; users rate items of their own cluster."""
    cluster = np.sort(RNG.integers(5, size=N))
    user, item = (cluster + 5 * RNG.integers(size // 5, size=N) for size in (USERS, ITEMS))
    tag, x = RNG.integers(TAGS, size=N), RNG.normal(size=N)
    with pm.Model() as model:
        users, items = pm.Normal("user", shape=USERS), pm.Normal("item", 0.0, 2.0, shape=ITEMS)
        mu = pm.Normal("mu", 0.0, 3.0) + pm.Normal("slope", shape=1)[0] * x
        mu = mu + users[user] + items[item] + pm.Normal("tag", 0.0, 0.1, shape=TAGS)[tag]
        pm.Normal("y", mu, 1.5, observed=RNG.normal(size=N))
    return model


@pytest.fixture(scope="module")
def sweep():
    return built(three_factors(), GroupedMH).target.sweep


def test_moves_along_the_directions_are_always_accepted_if_the_posterior_is_normal(sweep):
    its, joint = sweep.posterior, sweep.joint
    assert [number for number, _ in joint.factors] == [1, 2]
    k = joint.gradient.size
    assert 6 <= k < joint.entries.size  # a mean and a contrast for each cluster, and not all
    assert joint.stays > 0.9
    theta = its.anchor + 0.3 * RNG.normal(size=its.anchor.size)
    for correlation in (0.0, 0.7, -0.5):
        before = theta
        moved = move_jointly(its, joint, theta, correlation, RNG)
        assert moved.accepted == 1.0
        assert moved.log_ratio == pytest.approx(0.0, abs=1e-6)
        theta = moved.point
        change = theta[joint.entries] - before[joint.entries]
        along = joint.directions @ (joint.duals.T @ change)
        np.testing.assert_allclose(change, along, atol=1e-10)
        assert abs(change).max() > 0.01


def test_blocks_are_slowest_along_the_directions(sweep):
    """Of the blocks but the first one, given each other; the first is integrated out."""
    its, joint = sweep.posterior, sweep.joint
    precision = -its.expansion.hessian.toarray()
    for levels in its.factors:
        own = levels.entries.ravel()
        precision[own, own] -= levels.prior_derivatives(its.anchor)[1].ravel()
    first, own = its.factors[0].entries.ravel(), joint.entries
    common = its.common.entries
    precision[common, common] += [1.0 / 9.0, 1.0]
    between = precision[np.ix_(first, own)]
    within = precision[np.ix_(own, own)]
    given = np.zeros_like(within)
    for block in ([joint.common], [[k] for _, levels in joint.factors for k in levels[:, 0]]):
        for entries in block:
            given[np.ix_(entries, entries)] = within[np.ix_(entries, entries)]
    marginal = within - between.T @ np.linalg.solve(precision[np.ix_(first, first)], between)
    values = eigh(marginal, given, eigvals_only=True)
    slow = values[values < 0.9]
    assert joint.stays == pytest.approx(1.0 - values[0], abs=1e-3)
    found = eigh(
        joint.directions.T @ marginal @ joint.directions,
        joint.directions.T @ given @ joint.directions,
        eigvals_only=True,
    )
    np.testing.assert_allclose(found, slow[: found.size], rtol=1e-3, atol=1e-4)


def test_many_entries_are_searched_by_products(monkeypatch):
    """With strong dependence along three directions."""
    size = 300
    strong = np.linalg.qr(RNG.normal(size=(size, 3)))[0]
    through = sparse.csr_array(np.sqrt([[0.97], [0.9], [0.8]]) * strong.T)
    own = sparse.csr_array(sparse.eye_array(size))
    expected = directions._smallest(own, through)
    monkeypatch.setattr(directions, "_DENSE", 10)
    values, vectors = directions._smallest(own, through)
    np.testing.assert_allclose(values[:3], [0.03, 0.1, 0.2], rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(values[:3], expected[0][:3], rtol=1e-2, atol=1e-3)
    overlap = np.linalg.svd(vectors[:, :3].T @ strong, compute_uv=False)
    assert overlap.min() > 0.999
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), atol=1e-12)
