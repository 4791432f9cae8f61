"""Normal distributions of levels against linear algebra one by one."""

import numpy as np
import pytest

from pymc_austerity.levels import normals_of


@pytest.mark.parametrize("q", [1, 2, 3, 20])
def test_each_level_has_the_mean_and_covariance_of_its_quadratic(q):
    rng = np.random.default_rng(q)
    factors = rng.normal(size=(5, q, q))
    precision = factors @ factors.swapaxes(1, 2) + 0.1 * np.eye(q)
    slope = rng.normal(size=(5, q))
    normals = normals_of(precision, slope)
    values = rng.normal(size=(5, q))
    volume = -0.5 * np.linalg.slogdet(precision)[1].sum()
    assert normals.log_volume == pytest.approx(volume)
    for level in range(5):
        mean = np.linalg.solve(precision[level], slope[level])
        np.testing.assert_allclose(normals.mean[level], mean)
        root = normals.inverse_root[level].T
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(precision[level]))
        standard = normals.standard(values)[level]
        distance = (values[level] - mean) @ precision[level] @ (values[level] - mean)
        assert standard @ standard == pytest.approx(distance)
    np.testing.assert_allclose(normals.values(normals.standard(values)), values)


@pytest.mark.parametrize("q", [1, 2, 20])
def test_precisions_that_are_not_positive_definite_are_turned_round(q):
    precision = np.stack([np.eye(q), -4.0 * np.eye(q)])
    normals = normals_of(precision, np.zeros((2, q)))
    covariance = normals.inverse_root.swapaxes(1, 2) @ normals.inverse_root
    np.testing.assert_allclose(covariance, np.stack([np.eye(q), np.eye(q) / 4.0]))
