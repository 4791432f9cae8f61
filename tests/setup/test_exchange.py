"""Moves that change no row: where they are found, and that priors alone decide about them."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from pymc.distributions.transforms import ordered

from pymc_austerity import GroupedMH
from pymc_austerity.levels import Exchange, move_levels
from pymc_austerity.setup.levels import build
from tests.running import built, sample

N_GROUPS, N = 40, 4_000
RNG = np.random.default_rng(1)
GROUP, OTHER, X = RNG.integers(N_GROUPS, size=N), RNG.integers(35, size=N), RNG.normal(size=N)
Y = RNG.random(N) < 0.4


def model(*, intercept=True, slopes=False, crossed=False, ordinal=False):
    with pm.Model() as model:
        total = pm.Normal("b", 0.0, 1.0) * X
        if intercept:
            total = total + pm.Normal("c", 0.5, 2.0)
        effect = pm.Normal("effect", 0.2, pm.HalfNormal("tau", 1.0), shape=N_GROUPS)
        total = total + effect[GROUP]
        if slopes:
            total = total + pm.Normal("slope", 0.0, 0.5, shape=N_GROUPS)[GROUP] * X
        if crossed:
            total = total + pm.Normal("other", 0.0, 0.7, shape=35)[OTHER]
        if ordinal:
            cut = pm.Normal("cut", sigma=3.0, shape=2, transform=ordered, initval=[-1.0, 1.0])
            pm.OrderedLogistic("y", total, cut, observed=RNG.integers(3, size=N), compute_p=False)
        else:
            pm.Bernoulli("y", logit_p=total, observed=Y)
    return model


@pytest.mark.few("settings2-2", "settings5-1")
@pytest.mark.parametrize(
    ("settings", "n_directions"),
    [
        ({"intercept": False}, 0),
        ({}, 1),
        ({"slopes": True}, 2),
        ({"crossed": True}, 2),
        ({"intercept": False, "crossed": True}, 1),
        ({"intercept": False, "ordinal": True}, 1),
    ],
)
def test_directions_are_those_that_no_row_notices(settings, n_directions):
    sweep = built(model(**settings), GroupedMH).target.sweep
    if not n_directions:
        assert sweep.exchange is None
        assert "exchange" not in sweep.blocks
        return
    its, directions = sweep.posterior, sweep.exchange.fields.constant
    assert not sweep.exchange.fields.weights.size
    assert len(directions) == n_directions
    assert sweep.blocks[-1] == "exchange"
    theta = its.anchor + 0.1 * RNG.normal(size=its.anchor.size)
    rows = np.arange(N)
    assert len(its.unread.directions) == n_directions
    for factor, levels in enumerate(its.factors):  # bounds of its levels are independent
        assert not its.unread.amounts[factor][:, levels.entries].any()
    for step in directions:
        assert abs(step).max() > 1e-3
        moved = its.residuals(theta + step, theta, rows).sum()
        moved += its.expansion.difference(theta + step, theta)
        assert abs(moved) < 1e-8


def test_priors_alone_decide():
    """Along its direction the posterior is normal, with the mean and the variance of priors."""
    sweep = built(model(), GroupedMH).target.sweep
    its, (direction,) = sweep.posterior, sweep.exchange.fields.constant
    theta, search = its.anchor, sweep.init().exchange
    ahead = np.array([its.row_free_part(theta + t * direction, theta) for t in (-1.0, 1.0)])
    precision, slope = -ahead.sum(), 0.5 * (ahead[1] - ahead[0])
    rng, places = np.random.default_rng(2), []
    for draw in range(8_000):
        moved, search = sweep.exchange.move(its, theta, search, rng, tuning=draw < 300)
        theta = moved.point
        places.append((theta - its.anchor) @ direction / (direction @ direction))
        assert moved.n_rows == 0
    places = np.array(places[300:])
    n_independent = places.size / 3.0
    assert abs(places.mean() - slope / precision) < 5.0 / np.sqrt(precision * n_independent)
    assert abs(places.var() * precision - 1.0) < 5.0 * np.sqrt(2.0 / n_independent)
    assert abs(theta - its.anchor - places[-1] * direction).max() < 1e-9


PERSON, ITEM = np.repeat(np.arange(60), 12), np.tile(np.arange(12), 60)


def items(*, minus=False):
    """Item response with discriminations."""
    with pm.Model() as model:
        ability, place = pm.Normal("z", shape=60)[PERSON], pm.Normal("e", 0.0, 1.5, shape=12)[ITEM]
        slope = pm.LogNormal("a", 0.0, 0.5, shape=12)[ITEM]
        total = slope * (ability - place) if minus else slope * ability + place
        pm.Bernoulli("y", logit_p=total, observed=np.random.default_rng(4).random(720) < 0.6)
    return model


@pytest.mark.parametrize(
    ("model", "n_constant", "n_others"), [(items(), 0, 2), (items(minus=True), 1, 1)]
)
def test_products_of_levels_flow_where_no_row_notices(model, n_constant, n_others, monkeypatch):
    sweep = built(model, GroupedMH).target.sweep
    its, fields = sweep.posterior, sweep.exchange.fields
    assert [*fields.weights.any(axis=1)] == [False] * n_constant + [True] * n_others
    theta, amounts = its.anchor + 0.1 * RNG.normal(size=its.anchor.size), RNG.normal(size=2)
    there, volume = fields.flow(amounts, theta)
    moved = its.residuals(there, theta, np.arange(720)).sum()
    assert abs(moved + its.expansion.difference(there, theta)) < 1e-8
    back = np.append(*fields.flow(-amounts, there))
    assert_allclose(back, np.append(theta, -volume), atol=1e-10)
    ends = 1e-5 * np.eye(theta.size)
    jacobian = [(fields.flow(amounts, theta + e)[0] - there) / 1e-5 for e in ends]
    assert np.linalg.slogdet(jacobian)[1] == pytest.approx(volume, abs=1e-3)
    monkeypatch.setattr("pymc_austerity.setup.levels.invariances._MOST_STEPS", 3)  # too far
    exchange = built(model, GroupedMH).target.sweep.exchange
    assert exchange is None or not exchange.fields.weights.any()


def test_priors_and_the_volume_decide_along_a_flow():
    """Along the orbit of a point, the chain has the density that quadrature gives."""
    sweep = built(items(), GroupedMH).target.sweep
    its, fields = sweep.posterior, sweep.exchange.fields
    only = fields.combined(np.eye(fields.n_directions)[-1:])
    grid = np.linspace(-8.0, 8.0, 1_601)
    orbit = [only.flow(np.array([t]), its.anchor) for t in grid]
    density = np.exp([its.row_free_part(there, its.anchor) + v for there, v in orbit])
    density, places = density / density.sum(), np.array([there for there, _ in orbit])
    entry = int(np.argmax(places.std(axis=0)))
    mean = density @ places[:, entry]
    sd = np.sqrt(density @ (places[:, entry] - mean) ** 2)
    theta, search, rng, found = its.anchor, sweep.init().exchange, np.random.default_rng(5), []
    for draw in range(4_000):
        moved, search = Exchange(only).move(its, theta, search, rng, tuning=draw < 300)
        theta = moved.point
        found.append(theta[entry])
    n_effective = float(az.ess(np.array([found[300:]])))
    assert abs(np.mean(found[300:]) - mean) < 5.0 * sd / np.sqrt(n_effective)
    assert np.std(found[300:]) == pytest.approx(sd, rel=5.0 / np.sqrt(2.0 * n_effective))


def test_rows_are_expanded_about_a_mean_where_few_draws_of_levels_are_accepted(monkeypatch):
    accepted = []
    for least in (0.0, 1.1):
        monkeypatch.setattr(build, "_WELL_ACCEPTED", least)
        sweep, shares = built(items(), GroupedMH).target.sweep, []
        for rng in np.random.default_rng(6).spawn(4):
            point = sweep.begin(rng)
            for factor in np.arange(400) % 2:
                moved = move_levels(sweep.posterior, factor, point, 0.0, rng)
                point = moved.point
                shares.append(moved.accepted)
        accepted.append(np.mean(shares))
    assert np.diff(accepted) > 0.02  # 0.09, with a standard error of about 0.02


@pytest.mark.exhaustive
def test_an_intercept_beside_levels_mixes():
    its = model()
    idata = sample(built(its, GroupedMH), its, draws=500, tune=300, chains=2)
    assert float(az.ess(idata, var_names=["c"])["c"]) > 250.0
