"""Random permutations without a list of their numbers."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.levels.drawing import chances, first_of_permutation


def keys(seed, n):
    return np.random.default_rng(seed).integers(2**63, size=n)


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


def test_chances_are_uniform_and_independent_of_the_permutation():
    own = keys(3, 20_000)
    found = chances(own)
    assert stats.kstest(found, "uniform").pvalue > 1e-4
    first = [first_of_permutation(1_000, 1, key)[0] for key in own]
    assert stats.pearsonr(found, first).pvalue > 1e-4


def test_means_have_the_variance_of_sampling_without_replacement():
    values = np.random.default_rng(1).normal(size=50)
    means = [values[first_of_permutation(50, 20, key)].mean() for key in keys(2, 20_000)]
    expected = values.var(ddof=1) / 20 * (1 - 20 / 50)
    assert abs(np.var(means) / expected - 1.0) < 5.0 * np.sqrt(2.0 / len(means))
    assert abs(np.mean(means) - values.mean()) < 5.0 * np.sqrt(expected / len(means))
