"""The tests of samplers must themselves be right: seldom false alarms, and broken kernels found."""

import numpy as np
import pytest
from scipy import stats

from tests.calibration.exactness import Target, passes, rank_p_values, two_sample_p_values
from tests.calibration.uniformity import (
    chi_square_of_ranks,
    rank_among,
    same_distribution,
    smooth_test_of_ranks,
)

NORMAL = Target(lambda rng: rng.normal(size=1), lambda points: np.hstack([points, points**2]))
TESTS = [rank_p_values, two_sample_p_values]


def log_normal(deviation, scale):
    return -0.5 * (deviation / scale) ** 2 - np.log(scale)


def metropolis(scale_of=lambda x: 1.0, correct=True):
    """Random walk on a standard normal distribution, whose size may depend on where it is."""

    def kernel(point, rng):
        (x,) = point
        new = x + scale_of(x) * rng.normal()
        log_ratio = 0.5 * (x**2 - new**2)
        if correct:
            log_ratio += log_normal(x - new, scale_of(new)) - log_normal(new - x, scale_of(x))
        return np.array([new]) if np.log(rng.random()) < log_ratio else point

    return kernel


class TestUniformity:
    def test_ranks_of_exchangeable_numbers_are_uniform_also_with_ties(self, rng):
        values = rng.integers(0, 3, size=(4_000, 10))
        ranks = np.array([rank_among(row[0], row[1:], rng) for row in values])
        assert set(ranks) == set(range(10))
        assert chi_square_of_ranks(ranks, 10) > 1e-3

    @pytest.mark.parametrize("test", [chi_square_of_ranks, smooth_test_of_ranks])
    def test_p_values_of_uniform_ranks_are_uniform(self, test, rng):
        p_values = [test(rng.integers(0, 20, size=200), 20) for _ in range(1_000)]
        assert stats.kstest(p_values, "uniform").pvalue > 1e-3

    def test_bins_are_of_the_same_size_and_never_nearly_empty(self, rng):
        assert chi_square_of_ranks(np.arange(100), 100) == 1.0
        assert chi_square_of_ranks(np.arange(20), 20) == 1.0
        with pytest.raises(ValueError, match="too few"):
            chi_square_of_ranks(np.arange(9), 10)

    @pytest.mark.parametrize("shape", [(0.8, 0.8), (1.4, 1.4), (1.0, 1.4)])
    def test_too_narrow_too_wide_and_shifted_posteriors_are_found(self, shape, rng):
        ranks = np.floor(20 * rng.beta(*shape, size=1_000)).astype(int)
        assert chi_square_of_ranks(ranks, 20) < 1e-3
        assert smooth_test_of_ranks(ranks, 20) < 1e-6

    def test_fewer_ranks_are_enough_where_only_place_and_width_may_be_wrong(self, rng):
        ranks = np.floor(20 * rng.beta(0.6, 0.6, size=200)).astype(int)
        assert smooth_test_of_ranks(ranks, 20) < 1e-3

    def test_two_samples_of_few_values(self, rng):
        first, second = rng.integers(0, 3, size=(2, 500))
        assert same_distribution(first, second) > 1e-3
        assert same_distribution(first, np.minimum(second, 1)) < 1e-6
        assert same_distribution(np.zeros(5), np.zeros(5)) == 1.0


class TestSequentialDecision:
    def test_false_alarms_are_as_rare_as_promised(self, rng):
        """With a promise of 5 % instead of 0.001 %, so that there are some to count."""
        failed = sum(not passes(lambda n: rng.random(3), 1, false_alarm=0.05) for _ in range(4_000))
        assert 0 < failed <= stats.binom.isf(1e-4, 4_000, 0.05)

    def test_a_clear_failure_and_a_clear_pass_need_one_attempt(self):
        efforts = []

        def p_values(n, value):
            efforts.append(n)
            return np.array([value, 1.0])

        assert not passes(lambda n: p_values(n, 1e-9), 100)
        assert passes(lambda n: p_values(n, 0.4), 100)
        assert efforts == [100, 100]

    def test_doubt_is_resolved_with_more_effort(self):
        efforts = []

        def p_values(n):
            efforts.append(n)
            return np.array([0.01])

        assert not passes(p_values, 100)
        assert efforts[0] == 100 and set(efforts[1:]) == {400}


class TestKernels:
    @pytest.mark.parametrize("p_values", TESTS)
    def test_correct_kernels_pass(self, p_values, rng):
        for kernel in (metropolis(), metropolis(lambda x: 0.5 + abs(x))):
            assert passes(lambda n, kernel=kernel: p_values(kernel, NORMAL, n, rng), 400)

    @pytest.mark.parametrize("p_values", TESTS)
    def test_a_forgotten_log_ratio_is_found(self, p_values, rng):
        kernel = metropolis(lambda x: 0.2 + abs(x), correct=False)
        assert not passes(lambda n: p_values(kernel, NORMAL, n, rng), 1_600)

    @pytest.mark.few("two_sample_p_values")
    @pytest.mark.parametrize("p_values", TESTS)
    def test_a_target_that_is_10_percent_too_wide_is_found(self, p_values, rng):
        def kernel(point, rng):
            new = point + rng.normal(size=1)
            log_ratio = 0.5 * float((point**2 - new**2)[0]) / 1.1**2
            return new if np.log(rng.random()) < log_ratio else point

        assert not passes(lambda n: p_values(kernel, NORMAL, n, rng), 4_000)

    def test_a_chain_that_never_moves_leaves_everything_invariant(self, rng):
        """What the tests do not see: they are about what is sampled, not about how fast."""
        assert passes(lambda n: rank_p_values(lambda x, rng: x, NORMAL, n, rng), 400)
