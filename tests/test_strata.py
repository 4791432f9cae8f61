"""Permutations whose numbers are made one by one."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.strata import first_of_permutation


def keys(seed, n):
    return np.random.default_rng(seed).integers(2**53, size=n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 1_000])
def test_every_number_comes_once(n):
    for key in keys(n, 5):
        assert np.array_equal(np.sort(first_of_permutation(n, n, key)), np.arange(n))


@pytest.mark.parametrize("n", [100, 4_096, 50_000])
def test_fewer_begin_more(n):
    for key in keys(n, 5):
        every = first_of_permutation(n, n, key)
        for m in (0, 1, 7, n // 50, n // 5, n // 2):
            assert np.array_equal(first_of_permutation(n, m, key), every[:m])


@pytest.mark.parametrize("n", [3, 5, 7, 40])
def test_the_first_two_are_as_likely_as_any_other_two(n):
    pairs = dict.fromkeys(permutations(range(n), 2), 0)
    for key in keys(n, 60_000):
        pairs[tuple(first_of_permutation(n, 2, key).tolist())] += 1
    assert stats.chisquare(list(pairs.values())).pvalue > 1e-4


@pytest.mark.parametrize("n", [999, 1_000, 1_000_000])
def test_numbers_of_a_long_permutation_are_uniform_and_independent(n):
    drawn = np.array([first_of_permutation(n, 6, key) for key in keys(4, 30_000)]) / n
    for column in drawn.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    cells = np.floor(8 * drawn).astype(int)
    for one, other in combinations(range(6), 2):
        counts = np.bincount(8 * cells[:, one] + cells[:, other], minlength=64)
        assert stats.chisquare(counts).pvalue > 1e-5


@pytest.mark.parametrize("n", [50, 3_000])
def test_means_have_the_variance_of_sampling_without_replacement(n):
    values = np.random.default_rng(1).normal(size=n)
    means = [values[first_of_permutation(n, 20, key)].mean() for key in keys(2, 20_000)]
    expected = values.var(ddof=1) / 20 * (1 - 20 / n)
    assert abs(np.var(means) / expected - 1.0) < 5.0 * np.sqrt(2.0 / len(means))
    assert abs(np.mean(means) - values.mean()) < 5.0 * np.sqrt(expected / len(means))
