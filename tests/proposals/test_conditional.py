"""Moves of some entries given the others, against a normal distribution."""

import numpy as np
import pytest

from pymc_austerity.proposals import GaussianApproximation, conditional

HELD, MOVED = np.array([1, 4]), np.array([0, 2, 3])


@pytest.fixture
def joint(rng):
    matrix = rng.normal(size=(5, 5))
    root = np.linalg.cholesky(matrix @ matrix.T + np.eye(5))
    return GaussianApproximation(rng.normal(size=5), root)


def test_conditional_moments_are_those_of_the_textbook(joint):
    covariance = joint.root @ joint.root.T
    given = conditional(joint, MOVED, HELD)
    across = covariance[np.ix_(MOVED, HELD)]
    gain = across @ np.linalg.inv(covariance[np.ix_(HELD, HELD)])
    np.testing.assert_allclose(given.gain, gain)
    about = given.approximation
    np.testing.assert_allclose(
        about.root @ about.root.T, covariance[np.ix_(MOVED, MOVED)] - gain @ across.T
    )
