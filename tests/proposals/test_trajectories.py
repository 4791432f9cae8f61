"""Leapfrog trajectories are reversible, keep volume and follow the density they are given."""

import numpy as np
import pytest

from pymc_austerity.proposals.hamiltonian import center_and_scale, leapfrog, log_density, walk
from tests.references import slopes_of

D = 4
NOBODY = np.array([], dtype=np.int64)
LEVELS = np.array([2, 3])
HESSIAN = np.array([[0, 0, 0, 0], [0, -1, 0, 0], [0, 0, -4, 1], [0, 0, 1, -3.0]])
EXPANSION = (np.array([0.0, 0.3, 0.5, -0.2]), np.array([0.0, 0.1, 0.2, -0.3]), HESSIAN)
ROOT = np.linalg.cholesky(0.3 * np.eye(D) + 0.1)


def funnel(x):
    """x[0] ~ N(0, 1) is the log of the scale of x[2] and x[3], x[1] ~ t_3 is their mean."""
    precision, away = np.exp(-2.0 * x[0]), x[2:] - x[1]
    value = -0.5 * x[0] ** 2 - 2.0 * np.log1p(x[1] ** 2 / 3.0)
    value += -0.5 * precision * away @ away - 2.0 * x[0]
    gradient = np.empty(D)
    gradient[0] = -x[0] + precision * away @ away - 2.0
    gradient[1] = -4.0 * x[1] / (3.0 + x[1] ** 2) + precision * away.sum()
    gradient[2:] = -precision * away
    return value, gradient


def surrogate(point):
    """Row-free part and expansion, from their definitions."""
    anchor, gradient, hessian = EXPANSION
    away = point - anchor
    return funnel(point)[0] + gradient @ away + 0.5 * away @ hessian @ away


@pytest.fixture(params=[NOBODY, LEVELS], ids=["plain", "scaled"])
def known(request):
    return (*EXPANSION, request.param)


class TestCoordinates:
    def test_center_and_scale_are_conditional_moments(self, rng):
        x = rng.normal(size=D)
        center, scale = center_and_scale(funnel, x, EXPANSION[0], HESSIAN, LEVELS)
        prior = np.exp(-2.0 * x[0])
        precision = np.array([4.0, 3.0]) + prior
        np.testing.assert_allclose(scale, precision**-0.5)
        anchor = EXPANSION[0][LEVELS]
        np.testing.assert_allclose(center, anchor + (x[1] - anchor) * prior / precision)

    def test_density_is_that_of_the_point_times_the_jacobian(self, known, rng):
        scaled = known[-1]
        for x in rng.normal(size=(5, D)):
            point, log_jacobian = x.copy(), 0.0
            if scaled.size:
                center, scale = center_and_scale(funnel, x, EXPANSION[0], HESSIAN, scaled)
                point[scaled] = center + scale * x[scaled]
                log_jacobian = np.log(scale).sum()
            value, _ = log_density(funnel, x, *known)
            assert value == pytest.approx(surrogate(point) + log_jacobian, abs=1e-10)

    def test_gradient_is_the_derivative(self, known, rng):
        for x in rng.normal(size=(5, D)):
            differences = slopes_of(lambda at: log_density(funnel, at, *known)[0], x)
            gradient = log_density(funnel, x, *known)[1]
            np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)

    def test_a_prior_that_is_not_normal_has_no_density_there(self):
        """Curvature of the wrong sign: NaN, which rejects."""
        upward = (*EXPANSION[:2], np.zeros((D, D)), LEVELS)
        with np.errstate(all="ignore"):
            value, _ = log_density(lambda x: (0.5 * x @ x, x), np.zeros(D), *upward)
        assert np.isnan(value)


class TestLeapfrog:
    def end(self, place, momentum, known, size=0.1, n_steps=12):
        gradient = log_density(funnel, place, *known)[1]
        return leapfrog(funnel, known, place, momentum, gradient, ROOT, size, n_steps)

    def test_the_opposite_momentum_leads_back(self, known, rng):
        place, momentum = rng.normal(size=(2, D))
        there, ahead, *_ = self.end(place, momentum, known)
        back, behind, *_ = self.end(there, -ahead, known)
        assert np.linalg.norm(there - place) > 0.1
        np.testing.assert_allclose(back, place, atol=1e-9)
        np.testing.assert_allclose(-behind, momentum, atol=1e-9)

    def test_volume_is_kept(self, known, rng):
        state = rng.normal(size=2 * D)

        def moved(state):
            return np.concatenate(self.end(state[:D], state[D:], known)[:2])

        assert abs(np.linalg.det(slopes_of(moved, state))) == pytest.approx(1.0, rel=1e-5)

    def test_energy_is_kept_to_second_order(self, known, rng):
        place, momentum = rng.normal(size=(2, D))

        def error(n_steps):
            _, p, value, _ = self.end(place, momentum, known, 0.4 / n_steps, n_steps)
            before = log_density(funnel, place, *known)[0] - 0.5 * momentum @ momentum
            return value - 0.5 * p @ p - before

        assert error(16) / error(32) == pytest.approx(4.0, rel=0.15)

    def test_ends_where_the_density_is_not_finite(self):
        def wall(x):
            return (-np.inf if x[0] > 1.0 else 0.0), np.zeros(1)

        known = (np.zeros(1), np.zeros(1), np.zeros((1, 1)), NOBODY)
        zero, one = np.zeros(1), np.ones(1)
        place, _, value, _ = leapfrog(wall, known, zero, one, zero, np.eye(1), 0.4, 100)
        assert value == -np.inf
        assert place[0] == pytest.approx(1.2)


class TestWalk:
    def draws(self, known, rng, n, exact=funnel, root=ROOT):
        x, places = np.zeros(len(root)), []
        for _ in range(n):
            x, acceptance, n_accepted = walk(exact, known, x, root, 0.4, 2.0, 2, rng)
            assert 0.0 <= acceptance <= 1.0
            assert 0 <= n_accepted <= 2
            places.append(x)
        return np.array(places)

    def test_finds_a_normal_distribution(self, rng):
        covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
        hessian = -np.linalg.inv(covariance)
        known = (np.array([1.0, -1.0]), np.zeros(2), hessian, NOBODY)

        def nothing(x):
            return 0.0, np.zeros(2)

        found = self.draws(known, rng, 4_000, nothing, np.linalg.cholesky(covariance))
        np.testing.assert_allclose(found.mean(axis=0), [1.0, -1.0], atol=0.12)
        np.testing.assert_allclose(np.cov(found.T), covariance, atol=0.2)

    @pytest.mark.exhaustive
    def test_both_coordinates_have_the_same_distribution(self, rng):
        plain = self.draws((*EXPANSION, NOBODY), rng, 4_000)
        scaled = self.draws((*EXPANSION, LEVELS), rng, 4_000)
        for x in scaled:
            center, scale = center_and_scale(funnel, x, EXPANSION[0], HESSIAN, LEVELS)
            x[LEVELS] = center + scale * x[LEVELS]
        for first, second in zip(plain.T, scaled.T, strict=True):
            error = 6.0 * np.hypot(first.std(), second.std()) / np.sqrt(1_000)
            assert abs(first.mean() - second.mean()) < error
            assert first.std() == pytest.approx(second.std(), rel=0.15)
