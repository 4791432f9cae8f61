"""What a stretch of a chain tells about the covariance, and when it tells nothing."""

import numpy as np

from pymc_austerity.proposals.adaptation import covariance_estimate


def staying(rng, n_moves, n=200, d=3):
    """A chain that moves now and then, at places whose variance is rounded to above zero."""
    places = 0.1 + rng.normal(size=(n_moves + 1, d))
    return places[np.sort(np.arange(n) % (n_moves + 1))]


def test_rounding_errors_are_no_variance():
    """NumPy's variance of one and the same value is 1e-34 or so."""
    still = np.tile([0.1, 0.7, 1.1], (200, 1))
    assert still.var(axis=0).max() > 0.0
    assert covariance_estimate(still, full=True) is None


def test_an_entry_that_has_not_moved_has_variance_one(rng):
    points = staying(rng, 199)
    points[:, 1] = 0.1
    covariance = covariance_estimate(points, full=True)
    assert covariance[1, 1] == 1.0
    assert np.linalg.eigvalsh(covariance)[0] > 0.1
