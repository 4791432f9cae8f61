"""Posteriors with several modes: chains start at all of them, and a bad one is left."""

import warnings

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, AusterityWarning, GroupedMH
from tests.running import built, sample


@pytest.fixture(scope="module")
def squares():
    """Rows y ~ N(a^2, 1), and the step method on them."""
    y = np.random.default_rng(11).normal(1.0, 1.0, size=1_000)
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0, initval=0.9)
        pm.Normal("y", a**2, 1.0, observed=y)
        with pytest.warns(AusterityWarning, match="2 modes of comparable weight.* 'a'"):
            return model, AusterityMH()


def test_chains_start_at_every_mode(squares):
    _, step = squares
    signs = set()
    for seed in range(20):
        step.set_rng(seed)
        point, _ = step.step({"a": step.target.start[0]})
        assert abs(point["a"]) == pytest.approx(1.0, abs=0.3)
        signs.add(np.sign(point["a"]))
    assert signs == {-1.0, 1.0}


def test_no_expansion_about_one_of_several_modes(squares):
    model, step = squares
    assert "no control variates because the posterior has 2 modes" in step.summary
    idata = sample(step, model, draws=200, tune=200)
    assert 0.1 < idata.sample_stats["accepted"].mean() < 0.8


def test_who_names_an_anchor_means_that_mode(squares):
    model, _ = squares
    assert "about the anchor given" in built(model, anchor={"a": 1.0}).explain()


def test_a_wrong_trough_is_left():
    rng = np.random.default_rng(13)
    x = rng.uniform(0.0, 10.0, size=2_000)
    with pm.Model() as model:
        frequency = pm.Normal("frequency", 2.0, 1.0, initval=2.77)
        pm.Normal("y", pm.math.sin(frequency * x), 1.5, observed=rng.normal(np.sin(2.0 * x), 1.5))
        step = AusterityMH()
    assert "nats above the one nearest to the start" in step.explain()
    draws = sample(step, model, draws=200, tune=100).posterior["frequency"]
    assert draws.mean() == pytest.approx(2.0, abs=0.02)


def test_a_best_mode_that_one_search_alone_finds_is_doubted():
    """A frequency in a wide window, where each search ends in a trough of its own."""
    rng = np.random.default_rng(14)
    x = rng.uniform(0.0, 60.0, size=1_000)
    with pm.Model():
        frequency = pm.Normal("frequency", 2.0, 1.0, initval=3.0)
        pm.Normal("y", pm.math.sin(frequency * x), 1.5, observed=rng.normal(np.sin(2.0 * x), 1.5))
        with pytest.warns(AusterityWarning, match="only one search reached the highest"):
            AusterityMH()


def test_full_turns_of_an_angle_are_one_mode(rng):
    x = rng.uniform(0.0, 2.0 * np.pi, size=1_000)
    with pm.Model():
        angle = pm.VonMises("angle", 0.0, 0.1)
        y = np.cos(x - 2.5) + 0.5 * rng.normal(size=x.size)
        pm.Normal("y", pm.math.cos(x - angle), 0.5, observed=y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", AusterityWarning)
            step = AusterityMH(epsilon=0.05)
    assert step.target.anchor is not None


def test_modes_of_hierarchies_are_found_and_named_once(recwarn):
    """A hierarchy is searched first near the mode of its levels, as its spread may vanish."""
    rng = np.random.default_rng(2)
    s, i = rng.normal(size=20), rng.integers(20, size=30_000)
    j = (i + rng.integers(1, 20, size=i.size)) % 20
    with pm.Model() as model:
        levels = pm.Normal("s", 0.0, pm.HalfNormal("tau"), shape=s.size)
        mu = levels[i] * levels[j]
        pm.Normal("y", mu, 1.0, observed=rng.normal(s[i] * s[j], 1.0))
    assert "2 modes" in built(model).summary
    sentences = [str(w.message) for w in recwarn if issubclass(w.category, AusterityWarning)]
    assert len(sentences) == 1
    assert "2 modes of comparable weight, which differ most in 's'" in sentences[0]


def item_response(discriminations):
    rng = np.random.default_rng(3)
    person, item = np.indices((60, 20)).reshape(2, -1)
    slopes = rng.normal(size=20)
    eta = slopes[item] * (rng.normal(size=60)[person] - rng.normal(size=20)[item])
    with pm.Model() as model:
        ability = pm.Normal("ability", shape=60)
        difficulty = pm.Normal("difficulty", shape=20)
        a = discriminations()
        logit = a[item] * (ability[person] - difficulty[item])
        pm.Bernoulli("y", logit_p=logit, observed=rng.random(eta.size) < 1 / (1 + np.exp(-eta)))
    return model


@pytest.mark.parametrize(
    ("discriminations", "are_signs_open"),
    [
        (lambda: pm.Normal("a", 0.0, pm.HalfNormal("scale"), shape=20), True),
        (lambda: pm.Normal("a", pm.Normal("mean"), 1.0, shape=20), True),
        (lambda: pm.LogNormal("a", 0.0, 0.5, shape=20), False),
    ],
)
def test_signs_that_no_row_notices_are_named(discriminations, are_signs_open, recwarn):
    """All factors of the products start at 0, where the log-density has a saddle."""
    step = built(item_response(discriminations), GroupedMH)
    assert abs(step.target.sweep.posterior.anchor).max() > 0.5
    sentences = [str(w.message) for w in recwarn if issubclass(w.category, AusterityWarning)]
    assert len(sentences) == are_signs_open
    assert all("2 modes of comparable weight" in s and "signs change" in s for s in sentences)
