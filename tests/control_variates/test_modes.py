"""Modes that a search from one point does not see."""

import numpy as np
import pytest

from pymc_austerity.control_variates import NoAnchorError, find_anchor, find_modes
from tests.control_variates.regressions import Regression, logistic, normal, poisson, simulate


def squared(eta, y):
    """y ~ N(eta^2, 1)."""
    away = y - eta**2
    return -0.5 * away**2, 2.0 * eta * away, 2.0 * away - 4.0 * eta**2


def sine(eta, y):
    """y ~ N(sin(eta), 1.5^2)."""
    away, slope = y - np.sin(eta), np.cos(eta)
    value = -0.5 * away**2 / 1.5**2
    return value, away * slope / 1.5**2, (-(slope**2) - away * np.sin(eta)) / 1.5**2


class Started(Regression):
    """A regression with a start of its own."""

    begin = None

    @property
    def start(self):
        return np.array(self.begin)


def started(begin, family, X, y):
    model = Started(family, X, y)
    model.begin = begin
    return model


def squares(begin, rng, n_rows=1_000):
    return started([begin], squared, np.ones((n_rows, 1)), rng.normal(1.0, 1.0, n_rows))


def sines(begin, rng, n_rows=2_000):
    x = rng.uniform(0.0, 10.0, n_rows)
    return started([begin], sine, x[:, None], rng.normal(np.sin(2.0 * x), 1.5))


def log_density(model, point):
    value, _, _ = model.family(model.X @ point, model.y)
    return value.sum() - 0.5 * point @ point


@pytest.mark.parametrize("begin", [0.0, 1.0])
@pytest.mark.parametrize("n_rows", [1_000, 60_000])
def test_both_signs_are_found(begin, n_rows, rng):
    """The start is the saddle between them, or one of them."""
    model = squares(begin, rng, n_rows)
    modes = find_modes(*model.known, rng=rng)
    (other,) = modes.others
    assert modes.n_found == 2
    assert abs(modes.anchor.point) == pytest.approx(np.sqrt(model.y.mean()), abs=0.01)
    assert other.point == pytest.approx(-modes.anchor.point, abs=0.01)
    assert other.log_weight == pytest.approx(0.0, abs=0.1)
    assert other.root == pytest.approx(modes.anchor.root, rel=0.1)


@pytest.mark.parametrize("n_rows", [2_000, 60_000])
def test_a_wrong_trough_is_left(n_rows, rng):
    model = sines(2.77, rng, n_rows)
    nearest = find_anchor(*model.known, rng=rng)
    assert nearest.point == pytest.approx(2.77, abs=0.1)
    modes = find_modes(*model.known, rng=rng)
    assert modes.anchor.point == pytest.approx(2.0, abs=0.02)
    assert modes.others == ()
    assert modes.n_found > 2
    rise = log_density(model, modes.anchor.point) - log_density(model, nearest.point)
    assert modes.rise == pytest.approx(rise, rel=1e-6)
    assert rise > 100.0


def test_the_anchor_at_another_mode_is_that_of_a_search_from_there(rng):
    model = sines(2.77, rng)
    left = find_modes(*model.known, rng=rng).anchor
    model.begin = [2.0]
    right = find_anchor(*model.known, rng=rng)
    assert left.point == pytest.approx(right.point, abs=0.05 * right.root[0, 0])
    np.testing.assert_allclose(left.hessian, right.hessian, rtol=0.01)
    np.testing.assert_allclose(left.root, right.root, rtol=0.01)


@pytest.mark.parametrize("family", [normal, logistic, poisson])
@pytest.mark.parametrize("n_rows", [500, 60_000])
def test_one_mode_is_one_mode_and_costs_little(family, n_rows, rng):
    model = simulate(family, n_rows, rng)
    anchor = find_anchor(*model.known, rng=np.random.default_rng(1))
    passes, curvatures = model.passes, model.curvatures
    modes = find_modes(*model.known, rng=np.random.default_rng(1))
    assert (modes.n_found, modes.others, modes.rise) == (1, (), 0.0)
    assert modes.n_at_best > 4
    np.testing.assert_array_equal(modes.anchor.point, anchor.point)
    if n_rows > 10_000:
        assert model.passes - 2 * passes < 6.0
        assert model.curvatures - 2 * curvatures < 1.0


def test_unscaled_and_collinear_columns_have_one_mode(rng):
    X = rng.normal(size=(3_000, 3)) * [0.001, 1.0, 100.0]
    X = np.column_stack([X, X[:, 1] + 0.001 * rng.normal(size=3_000)])
    model = simulate(logistic, 3_000, rng, coefficients=[1.0, 1.0, 0.01, 0.0], X=X)
    assert find_modes(*model.known, rng=rng).n_found == 1


def test_no_mode_at_all(rng):
    model = simulate(normal, 500, rng, X=np.zeros((500, 3)))
    model.prior_precision = 0.0
    with pytest.raises(NoAnchorError, match="not negative definite"):
        find_modes(*model.known, rng=rng)
