import numpy as np
import pytest
from scipy.special import digamma

from pymc_austerity.proposals import Center, GaussianApproximation, Outcome


def fed(center, points, previous=None):
    """A chain that visits the points one after the other; None is a rejection."""
    if previous is None:
        previous, points = points[0], points[1:]
    for point in points:
        accepted = point is not None
        following = point if accepted else previous
        center = center.after(Outcome(previous, following, accepted, 100))
        previous = following
    return center


def a_center(d, mean=0.0, sd=1.0):
    return Center.begin(GaussianApproximation(np.full(d, mean), sd * np.eye(d)))


def test_independent_draws_are_worth_one_each(rng):
    center = fed(a_center(8, sd=3.0), list(3.0 * rng.standard_normal((2_000, 8))))
    assert center.independence == pytest.approx(1.0, abs=0.1)
    assert center.uncertainty == pytest.approx(8 / 2_000, rel=0.1)


def test_rejections_and_small_moves_are_worth_less(rng):
    steps = rng.standard_normal((2_000, 4))
    waits = [point for step in steps for point in (step, None)]
    assert fed(a_center(4), waits).independence == pytest.approx(0.5, abs=0.05)
    small = np.empty_like(steps)
    small[0] = steps[0]
    for k in range(1, len(steps)):  # autocorrelation 0.9: jumps of squared length 2 d (1 - 0.9)
        small[k] = 0.9 * small[k - 1] + np.sqrt(1 - 0.81) * steps[k]
    assert fed(a_center(4), list(small)).independence == pytest.approx(0.1, rel=0.15)


def test_a_mean_elsewhere_is_found(rng):
    true = np.array([2.0, 0.0, -1.0])
    root = np.array([[1.0, 0, 0], [0.5, 2.0, 0], [0, 0.3, 0.1]])
    center = Center.begin(GaussianApproximation(np.zeros(3), root))
    points = true + rng.standard_normal((4_000, 3)) @ root.T
    found = fed(center, list(points)).estimate()
    assert np.linalg.norm(center.approximation.standardize(found.mean - true)) < 0.1
    np.testing.assert_array_equal(found.root, root)


def test_the_way_is_shortened_as_james_and_stein_do(rng):
    center = fed(a_center(10), list(0.6 + rng.standard_normal((100, 10))))
    average = center.total / center.efficiency.n_tries
    kept = 1.0 - center.uncertainty / (average @ average)
    assert 0.5 < kept < 1.0
    np.testing.assert_allclose(center.estimate().mean, kept * average)


def test_no_way_is_gone_that_chance_explains(rng):
    center = fed(a_center(10), list(0.05 + rng.standard_normal((100, 10))))
    assert center.estimate() is center.approximation


def test_chance_moves_it_less_than_it_could(rng):
    """Averaged over chains, the squared error at the mode is far below that of the average."""
    found, averages = [], []
    for _ in range(200):
        center = fed(a_center(10), list(rng.standard_normal((50, 10))))
        found.append(np.sum(center.estimate().mean ** 2))
        averages.append(np.sum((center.total / 50) ** 2))
    assert np.mean(found) < 0.4 * np.mean(averages)


def test_nothing_seen_and_nothing_accepted_leave_it_where_it_is():
    center = a_center(2)
    assert center.estimate() is center.approximation
    point = np.ones(2)
    center = fed(center, [None] * 50, previous=point)
    assert center.uncertainty == np.inf
    assert center.estimate() is center.approximation


def test_the_past_counts_less(rng):
    center = fed(a_center(2), list(5.0 + rng.standard_normal((400, 2))))
    center = fed(center.discounted(), list(rng.standard_normal((400, 2))), previous=np.zeros(2))
    np.testing.assert_allclose(center.total / center.efficiency.n_tries, 5.0 / 3, atol=0.3)


def test_skewed_marginals(rng):
    """Logarithms of gamma variables: their mean is digamma(shape), their mode log(shape)."""
    shape, d = 2.0, 5
    mode = GaussianApproximation(np.full(d, np.log(shape)), np.eye(d) / np.sqrt(shape))
    center = fed(Center.begin(mode), list(np.log(rng.gamma(shape, size=(2_000, d)))))
    np.testing.assert_allclose(center.estimate().mean, digamma(shape), atol=0.1)
