"""The mode, and the sums of the terms of all rows, against those of each of them."""

from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_austerity.control_variates import NoAnchorError, find_anchor
from pymc_austerity.control_variates import anchor as anchors
from pymc_austerity.control_variates.search import (
    NoModeError,
    approach_mode,
    inverse_root,
    trust_region,
)
from tests.control_variates.brute_force import gradients, hessians, taylor_differences
from tests.control_variates.regressions import Regression, logistic, normal, poisson, simulate

CLOSE_ENOUGH = 0.02  # posterior standard deviations, as the search promises
FAMILIES = [normal, logistic, poisson]
N_ROWS = 200


def anchor_of(model, rng, **kwargs):
    return find_anchor(*model.known, rng=rng, **kwargs)


def distance_in_sds(point, model):
    mode = model.mode()
    away = point - mode
    return np.sqrt(away @ model.precision(mode) @ away)


def pair(anchor, rng, spread=1.0):
    return [
        anchor.point + spread * anchor.root @ rng.standard_normal(anchor.point.size) for _ in "ab"
    ]


# ------------------------------------------------------------------ where it is
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n_rows", [2_000, 60_000])
def test_mode_and_curvature_of_regressions(family, n_rows, rng):
    model = simulate(family, n_rows, rng)
    anchor = anchor_of(model, rng)
    passes, curvatures = model.passes, model.curvatures
    assert distance_in_sds(anchor.point, model) < CLOSE_ENOUGH
    np.testing.assert_allclose(anchor.hessian, model.hessian(anchor.point), rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(
        anchor.gradient, model.row_gradients(anchor.point).sum(axis=0), rtol=1e-9, atol=1e-7
    )
    identity = anchor.root.T @ model.precision(anchor.point) @ anchor.root
    np.testing.assert_allclose(identity, np.eye(3), atol=1e-9)
    assert passes < 12
    assert curvatures < 12


@pytest.mark.parametrize("is_near", [True, False])
def test_a_search_on_all_rows_begins_at_the_higher_point(monkeypatch, is_near, rng):
    """Where the one on some rows ended, unless that is below the start."""
    model, begins = simulate(logistic, 60_000, rng), []
    end = model.mode() if is_near else np.full(3, 40.0)
    flat = SimpleNamespace(hessian=lambda point: np.zeros((3, 3)))
    monkeypatch.setattr(anchors, "_mode_on_some_rows", lambda *args: (end, flat))

    def traced(start, *args):
        begins.append(start)
        return trust_region(start, *args)

    monkeypatch.setattr(anchors, "trust_region", traced)
    anchor = anchor_of(model, rng)
    assert distance_in_sds(anchor.point, model) < CLOSE_ENOUGH
    np.testing.assert_array_equal(begins, [end if is_near else model.known[0]])


@pytest.mark.few("rare feature, no prior-1", "rare feature-2", "heavy tails-0")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["rare feature", "rare feature, no prior", "heavy tails"])
def test_rows_that_a_sample_misses_cost_few_passes(kind, seed):
    """20 of 60,000 rows know about the last coefficient, or a few rows dominate all of them."""
    rng, n_rows = np.random.default_rng(seed), 60_000
    if kind == "heavy tails":
        X = rng.standard_t(1.5, size=(n_rows, 3))
    else:
        X = rng.normal(size=(n_rows, 3))
        X[:, 2] = 0.0
        X[rng.choice(n_rows, 20, replace=False), 2] = 1.0
    model = simulate(logistic, n_rows, rng, [0.5, -0.3, 1.0], X)
    if kind == "rare feature, no prior":
        model.prior_precision = 1e-12
    anchor = anchor_of(model, rng)
    assert model.passes < 15
    assert model.curvatures < 15
    assert distance_in_sds(anchor.point, model) < CLOSE_ENOUGH


def test_a_start_far_away_is_no_obstacle(rng):
    model = simulate(logistic, 2_000, rng)
    anchor = find_anchor(np.array([30.0, -40.0, 50.0]), *model.known[1:], rng=rng)
    assert distance_in_sds(anchor.point, model) < CLOSE_ENOUGH


def test_a_given_point_is_taken_as_it_is(rng):
    model, at = simulate(logistic, 2_000, rng), np.array([0.3, 0.2, 0.1])
    anchor = anchor_of(model, rng, at=at)
    np.testing.assert_array_equal(anchor.point, at)
    np.testing.assert_allclose(anchor.hessian, model.hessian(at), rtol=1e-9)
    assert model.passes == pytest.approx(1.0)
    assert model.curvatures == pytest.approx(1.0)


def test_deterministic_given_the_generator(rng):
    model = simulate(poisson, 60_000, rng)
    first, second = (anchor_of(model, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.point, second.point)


# ------------------------------------------------------------------ what is expanded there
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", [1, 2])
def test_expansion_is_the_sum_of_the_terms_of_all_rows(family, order, rng):
    model = simulate(family, 300, rng)
    anchor = anchor_of(model, rng, order=order)

    def values(point):
        return model.differences(point, anchor.point, model.X, model.y)

    g, H = gradients(values, anchor.point), hessians(values, anchor.point)
    for spread in (1.0, 10.0):
        proposed, current = pair(anchor, rng, spread)
        terms = taylor_differences(g, H, anchor.point, proposed, current, order)
        expansion = anchor.expansion(proposed, current)
        assert expansion == pytest.approx(terms.sum(), rel=1e-6, abs=1e-6)
        assert anchor.expansion(current, proposed) == pytest.approx(-expansion, rel=1e-10)


# ------------------------------------------------------------------ where there is none
def test_a_flat_direction_without_a_prior(rng):
    X = rng.normal(size=(1_000, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    model = simulate(normal, 1_000, rng, X=X)
    model.prior_precision = 0.0
    with pytest.raises(NoAnchorError, match=r"^the \w.*[^.]$"):
        anchor_of(model, rng)


def two_normals(eta, y):
    """Rows from either of two means that mirror each other, which the start cannot tell apart."""
    t = np.tanh(eta * y)
    value = -0.5 * (y**2 + eta**2) + np.logaddexp(eta * y, -eta * y)
    return value, y * t - eta, -1 + y**2 * (1 - t**2)


def two_modes(rng, n_rows=500):
    y = rng.choice([-3.0, 3.0], n_rows) + rng.normal(size=n_rows)
    return Regression(two_normals, np.ones((n_rows, 1)), y)


@pytest.mark.parametrize("at", [None, np.zeros(1)])
def test_a_saddle_between_two_modes(at, rng):
    with pytest.raises(NoAnchorError, match="not negative definite"):
        anchor_of(two_modes(rng), rng, at=at)


def test_one_of_two_modes_is_found_from_beside_the_saddle(rng):
    anchor = find_anchor(np.array([0.1]), *two_modes(rng).known[1:], rng=rng)
    assert anchor.point[0] == pytest.approx(3.0, abs=0.3)


@pytest.mark.parametrize("n_rows", [1_000, 60_000])
def test_a_likelihood_that_is_not_finite(n_rows, rng):
    model = simulate(normal, n_rows, rng)
    model.y[::7] = np.nan
    with np.errstate(invalid="ignore"), pytest.raises(NoAnchorError, match=r"^the \w.*[^.]$"):
        anchor_of(model, rng)


def test_a_direction_that_some_rows_leave_open(rng):
    """Three of 60,000 rows tell of the last coefficient and there is no prior at all."""
    X = rng.normal(size=(60_000, 3))
    X[:, 2] = 0.0
    X[rng.choice(60_000, 3, replace=False), 2] = [1.0, 2.0, -1.0]
    model = simulate(poisson, 60_000, rng, [0.5, -0.3, 1.0], X)
    model.prior_precision = 0.0
    anchor = anchor_of(model, rng)
    assert distance_in_sds(anchor.point, model) < CLOSE_ENOUGH


# ------------------------------------------------------------------ a detail
@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize("units", [1.0, 1e-8])
def test_inverse_root(condition, units, rng):
    basis, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    scales = np.array([1.0, units, 1.0, 1.0 / units, 1.0])
    well = basis @ np.diag(np.geomspace(1.0, condition, 5)) @ basis.T
    precision = well * np.outer(scales, scales)
    root = inverse_root(precision)
    np.testing.assert_array_equal(np.triu(root, 1), 0.0)
    assert (np.diag(root) > 0).all()
    scaled = scales[:, None] * root
    np.testing.assert_allclose(scaled @ scaled.T @ well, np.eye(5), atol=1e-13 * condition)


@pytest.mark.parametrize(
    "precision",
    [
        -np.eye(2),
        np.diag([1.0, 0.0]),
        np.diag([1.0, -1e-300]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.ones((2, 2)) + np.diag([0.0, 1e-15]),
        np.array([[1.0, np.nan], [np.nan, 1.0]]),
        np.diag([1.0, np.inf]),
    ],
)
def test_no_inverse_root(precision):
    with pytest.raises(NoModeError, match="not negative definite"):
        inverse_root(precision)


def density_of(log_density):
    """With derivatives by PyTensor."""
    x = pt.dvector()
    value = log_density(x)
    of_value = pytensor.function([x], [value, pt.grad(value, x)])
    return SimpleNamespace(
        gradient=of_value, hessian=pytensor.function([x], pytensor.gradient.hessian(value, x))
    )


def close_fit(scale):
    """A line through the origin of slope one, by slope and logarithm of the residual scale."""
    noise, x = np.random.default_rng(1).normal(size=(2, 1_000))
    y = x + scale * noise
    return lambda p: pm.logp(pm.Normal.dist(p[0] * x, pt.exp(p[1])), y).sum()


def levels_alone(p):
    """Six levels about zero, and the logarithm of their spread, without rows."""
    return pm.logp(pm.Normal.dist(0.0, pt.exp(p[-1])), p[:-1]).sum()


@pytest.mark.parametrize("scale", [0.1, 0.001])
def test_a_step_too_far_is_taken_back(scale):
    mode = trust_region(np.zeros(2), density_of(close_fit(scale)))
    assert mode == pytest.approx([1.0, np.log(scale)], abs=0.1)


def test_a_density_without_bound_has_no_mode():
    with pytest.raises(NoModeError, match="no bound"):
        trust_region(np.array([0.5, -0.3, 0.2, 1.0, -1.0, 0.1, 0.0]), density_of(levels_alone))


def test_a_long_search_is_looked_at_once():
    """The curvature says nothing of the next kink."""
    x = np.random.default_rng(1).normal(size=(300, 2))
    kinked = SimpleNamespace(
        gradient=lambda p: (-np.abs(x @ p - 1.0).sum(), -np.sign(x @ p - 1.0) @ x),
        hessian=lambda p: -1e-3 * np.eye(2),
    )
    seen = []
    trust_region(np.zeros(2), kinked, seen.append)
    assert len(seen) == 1
    trust_region(np.zeros(2), density_of(close_fit(0.1)), seen.append)
    assert len(seen) == 1


class Kinked:
    """A normal log-density with a Laplace prior."""

    def __init__(self, width):
        self.width = width

    def gradient(self, point):
        away = point - 0.001
        value = -50.0 * away @ away - np.abs(point).sum() / self.width
        return value, -100.0 * away - np.sign(point) / self.width

    def hessian(self, point):
        return -100.0 * np.eye(point.size)


@pytest.mark.parametrize("start", [[0.3], [-0.2, 0.1], [1e-9]])
def test_a_kink_is_called_a_kink(start):
    with pytest.raises(NoModeError, match="has a kink near its mode"):
        approach_mode(np.array(start), Kinked(0.01), Kinked(0.01))


def test_beside_a_kink_there_may_be_a_mode():
    away = approach_mode(np.array([0.3]), Kinked(1e6), Kinked(1e6))
    assert away == pytest.approx(0.001, abs=0.01)
