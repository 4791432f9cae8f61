import numpy as np
import pytest
from scipy import stats

from pymc_austerity.proposals import CrankNicolsonProposal, GaussianApproximation, Layout

MEAN = np.array([1.0, -2.0, 30.0])
COVARIANCE = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1e-4]])
APPROXIMATION = GaussianApproximation(MEAN, np.linalg.cholesky(COVARIANCE))
LAYOUT = Layout.continuous(3)
SIZES = [0.05, 0.5, 0.9, 1.0]


def log_kernel(b, start, end):
    """Log-density of going from one point to another, by the definition of the move."""
    mean = MEAN + np.sqrt(1 - b**2) * (start - MEAN)
    return stats.multivariate_normal(mean, b**2 * COVARIANCE).logpdf(end)


def from_afar(rng):
    return MEAN + 3 * APPROXIMATION.root @ rng.standard_normal(3)


@pytest.mark.parametrize("b", SIZES)
def test_log_ratio_is_that_of_the_kernel(b, rng):
    moves = CrankNicolsonProposal(b)
    state = moves.init(LAYOUT, APPROXIMATION)
    for _ in range(20):
        point = from_afar(rng)
        new, log_ratio, _ = moves.propose(state, point, rng)
        expected = log_kernel(b, new, point) - log_kernel(b, point, new)
        assert log_ratio == pytest.approx(expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("b", SIZES)
def test_always_accepted_where_the_approximation_is_right(b, rng):
    """The log-ratio cancels the difference of the target, so that acceptance is exactly 1."""
    moves, target = CrankNicolsonProposal(b), stats.multivariate_normal(MEAN, COVARIANCE)
    state = moves.init(LAYOUT, APPROXIMATION)
    for _ in range(20):
        point = from_afar(rng)
        new, log_ratio, _ = moves.propose(state, point, rng)
        assert target.logpdf(new) - target.logpdf(point) + log_ratio == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("b", SIZES)
def test_leaves_the_approximation_as_it_is(b, rng):
    moves = CrankNicolsonProposal(b)
    state = moves.init(LAYOUT, APPROXIMATION)
    ends, starts = [], []
    for _ in range(4_000):
        point = MEAN + APPROXIMATION.root @ rng.standard_normal(3)
        new, *_ = moves.propose(state, point, rng)
        starts.append(APPROXIMATION.inverse_root @ (point - MEAN))
        ends.append(APPROXIMATION.inverse_root @ (new - MEAN))
    starts, ends = np.array(starts), np.array(ends)
    for entry in range(3):
        assert stats.kstest(ends[:, entry], "norm").pvalue > 1e-4
        correlation = np.corrcoef(starts[:, entry], ends[:, entry])[0, 1]
        assert abs(correlation - np.sqrt(1 - b**2)) < 4 / np.sqrt(4_000)


def test_points_keep_their_type_and_the_ratio_is_of_the_rounded_point(rng):
    moves = CrankNicolsonProposal(1.0)
    state = moves.init(LAYOUT, APPROXIMATION)
    point = MEAN.astype(np.float32)
    new, log_ratio, _ = moves.propose(state, point, rng)
    assert new.dtype == np.float32
    target = stats.multivariate_normal(MEAN, COVARIANCE)
    assert log_ratio == pytest.approx(target.logpdf(point) - target.logpdf(new), rel=1e-9)


def test_approximation_has_a_density(rng):
    points = np.array([from_afar(rng) for _ in range(5)])
    densities = np.array([APPROXIMATION.log_density(point) for point in points])
    expected = stats.multivariate_normal(MEAN, COVARIANCE).logpdf(points)
    np.testing.assert_allclose(np.diff(densities), np.diff(expected), rtol=1e-9)
