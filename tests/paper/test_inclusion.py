from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import comb

from pymc_austerity.paper import InclusionIndicators

N = 5
SUBSETS = np.array(list(product([0, 1], repeat=N)))


def log_probabilities(n_active, values):
    density = pm.logp(InclusionIndicators.dist(N, n_active, shape=(len(values), N)), values)
    return density.eval()


def test_probabilities_are_those_of_the_number_shared_among_the_choices():
    found = np.exp(log_probabilities(pm.Poisson.dist(1.5), SUBSETS))
    weights = stats.poisson(1.5).pmf(np.arange(N + 1))
    k = SUBSETS.sum(axis=1)
    np.testing.assert_allclose(found, (weights / weights.sum() / comb(N, np.arange(N + 1)))[k])
    assert found.sum() == pytest.approx(1.0)


def test_impossible_values_have_probability_zero():
    values = np.array([[2, 0, 0, 0, 0], [-1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    found = log_probabilities(pm.DiscreteUniform.dist(0, 3), values)
    np.testing.assert_array_equal(found, -np.inf)


@pytest.mark.few("n_active1")
@pytest.mark.parametrize("n_active", [pm.Poisson.dist(1.5), pm.DiscreteUniform.dist(1, 3)])
def test_draws_have_these_probabilities(n_active):
    size = 6_000
    draws = pm.draw(InclusionIndicators.dist(N, n_active), draws=size, random_seed=4)
    probabilities = np.exp(log_probabilities(n_active, SUBSETS))
    expected = size * probabilities / probabilities.sum()  # PyMC rounds some to float32
    places = draws @ 2 ** np.arange(N)[::-1]
    counts = np.bincount(places, minlength=2**N)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], expected[possible]).pvalue > 1e-4


def test_start_is_possible_where_zero_is_not():
    with pm.Model() as model:
        InclusionIndicators("gamma", N, pm.DiscreteUniform.dist(2, 4))
    point = model.initial_point()
    assert point["gamma"].tolist() == [1, 1, 0, 0, 0]
    assert np.isfinite(model.compile_logp()(point))
