"""The parts of the experiment with mixed signals."""

import numpy as np
import pytest
from scipy.stats import kurtosis, special_ortho_group

from examples.austerity2014 import ica, rotations
from examples.austerity2014.amari import amari_distance
from tests.references import mean_and_error, slopes_of


class TestAmariDistance:
    def test_by_hand_in_two_dimensions(self):
        """P = [[1, 1/2], [0, 1]] before its rows are made as long as 1."""
        length = np.sqrt(1.25)
        p = np.array([[1.0, 0.5], [0.0, 1.0]])
        rows = 0.5 + 0.0
        columns = 0.0 + 0.5 / length
        assert amari_distance(p, np.eye(2)) == pytest.approx((rows + columns) / 4.0)

    def test_by_a_loop_over_entries(self, rng):
        found, true = rng.normal(size=(2, 4, 4))
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        true /= np.linalg.norm(true, axis=1, keepdims=True)
        p = np.abs(found @ np.linalg.inv(true))
        total = 0.0
        for i in range(4):
            total += sum(p[i, j] for j in range(4)) / max(p[i, j] for j in range(4)) - 1.0
            total += sum(p[j, i] for j in range(4)) / max(p[j, i] for j in range(4)) - 1.0
        assert amari_distance(found, true) == pytest.approx(total / 24.0)

    def test_knows_neither_order_nor_sign_nor_scale_of_the_rows(self, rng):
        found, true = rng.normal(size=(2, 4, 4))
        expected = amari_distance(found, true)
        scales = rng.normal(size=(4, 1)) * 3.0
        assert amari_distance(scales * found[[2, 0, 3, 1]], true) == pytest.approx(expected)
        assert amari_distance(found, scales * true[[1, 3, 2, 0]]) == pytest.approx(expected)


class TestRotations:
    def test_angles_undo_the_rotation(self, rng):
        angles = rng.normal(scale=0.5, size=6)
        W = rotations.rotation(angles)
        np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)
        np.testing.assert_allclose(rotations.angles_of(W), angles, atol=1e-9)

    @pytest.mark.parametrize("size", [3, 4])
    def test_volume_is_the_determinant_of_the_derivative(self, size, rng):
        """By finite differences, in the tangent space at the rotation."""
        angles = rng.normal(scale=0.7, size=size * (size - 1) // 2)
        W, above = rotations.rotation(angles), np.triu_indices(size, 1)
        derivative = slopes_of(lambda x: (W.T @ rotations.rotation(x))[above], angles)
        expected = np.log(abs(np.linalg.det(derivative)))
        assert expected < -0.05
        assert rotations.log_volume(angles) == pytest.approx(expected, abs=1e-4)

    @pytest.mark.exhaustive
    def test_moves_leave_the_uniform_distribution_as_it_is(self, rng):
        """Rejecting by the log-ratio alone samples SO(3): its angle has density 1 - cos."""
        moves = rotations.MovesAbout(np.eye(3), np.eye(3))
        point, angles = np.eye(3).ravel(), []
        for _ in range(6_000):
            new, log_ratio = moves(point, rng)
            if np.log1p(-rng.random()) < log_ratio and turn_of(new) < 2.0:
                point = new
            angles.append(turn_of(point))
        angles = np.array(angles)
        inside = (np.array([0.7, 1.0, 1.5]) - np.sin([0.7, 1.0, 1.5])) / (2.0 - np.sin(2.0))
        for bound, expected in zip((0.7, 1.0, 1.5), inside, strict=True):
            share, error = mean_and_error(angles < bound)
            assert error < 0.03
            assert abs(share - expected) < 4.0 * error


def turn_of(point):
    """Angle of a rotation in three dimensions."""
    return np.arccos((point[[0, 4, 8]].sum() - 1.0) / 2.0)


class TestMixture:
    @pytest.fixture
    def mixture(self, rng):
        return ica.Mixture.draw(5_000, rng)

    def test_is_white_and_unmixes(self, mixture):
        np.testing.assert_allclose(np.cov(mixture.x.T, ddof=0), np.eye(4), atol=1e-9)
        assert mixture.distances(mixture.unmixing[None])[0, 0] == pytest.approx(0.0, abs=1e-12)
        found = mixture.x @ mixture.unmixing
        assert kurtosis(found[:, 0]) > 2.0 and kurtosis(found[:, 1]) > 2.0

    @pytest.mark.exhaustive
    def test_model_is_the_papers_density(self, mixture):
        W = special_ortho_group.rvs(4, size=2, random_state=1)
        s = mixture.x @ W
        expected = -np.log(4.0 * np.cosh(s / 2.0) ** 2).sum(axis=(1, 2))
        logp = mixture.model().compile_logp()
        ours = [float(logp({"W": each})) for each in W]
        assert ours[1] - ours[0] == pytest.approx(expected[1] - expected[0], rel=1e-9)
        fast = [mixture.log_likelihood(each) for each in W]
        assert fast[1] - fast[0] == pytest.approx(expected[1] - expected[0], rel=1e-9)

    def test_gradient_and_mode(self, mixture):
        W = special_ortho_group.rvs(4, random_state=2)
        numeric = slopes_of(
            lambda x: mixture.log_likelihood(W @ rotations.rotation(x)), np.zeros(6)
        )
        np.testing.assert_allclose(mixture.gradient(W), numeric, rtol=1e-4, atol=1e-2)
        mode, precision = ica.posterior_mode(mixture)
        assert np.abs(mixture.gradient(mode)).max() < 1e-6 * np.trace(precision)
        nearby = [mode @ rotations.rotation(x) for x in rng_angles()]
        assert mixture.log_likelihood(mode) > max(map(mixture.log_likelihood, nearby))


def rng_angles():
    """Small rotations in all directions."""
    return np.random.default_rng(3).normal(scale=0.02, size=(50, 6))
