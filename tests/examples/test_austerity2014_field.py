"""The parts of the experiment with a Markov random field."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from examples.austerity2014 import markov_field
from examples.austerity2014.timed import TimedRun
from examples.austerity2014.triple_field import TripleField
from pymc_austerity import AusterityGibbs

EXACT = {
    "likelihood": ["potentials"],
    "epsilon": 0.0,
    "audit": 0.0,
    "compile_kwargs": {"mode": "FAST_COMPILE"},
}


@pytest.fixture
def field(rng):
    """Six variables."""
    return TripleField.draw(6, 0.5, rng)


def log_density(field, state):
    """The potentials added up, one by one."""
    numbers = (4 * state[i] + 2 * state[j] + state[k] for i, j, k in field.triples)
    return sum(row[number] for row, number in zip(field.table, numbers, strict=True))


class TestTruth:
    def test_conditional_probabilities_by_adding_up_potentials(self, field, rng):
        states = rng.integers(0, 2, size=(12, 6))
        found = markov_field.exact_probabilities(field, states)
        for number, (state, probability) in enumerate(zip(states, found, strict=True)):
            zero, one = state.copy(), state.copy()
            zero[number % 6], one[number % 6] = 0, 1
            expected = expit(log_density(field, one) - log_density(field, zero))
            assert probability == pytest.approx(expected)

    def test_marginals_of_the_exact_sampler_by_enumeration(self, field, rng):
        states = np.array(list(product((0, 1), repeat=6)))
        weights = np.exp([log_density(field, state) for state in states])
        subsets, n_draws = np.array([[0, 2, 5], [4, 1, 3]]), 20_000
        found = markov_field.marginals(field.sample(n_draws, rng), subsets)
        for subset, shares in zip(subsets, found, strict=True):
            numbers = states[:, subset] @ [1, 2, 4]
            expected = np.bincount(numbers, weights / weights.sum())
            error = np.sqrt(expected * (1.0 - expected) * 4.0 / n_draws)  # correlated draws
            assert (np.abs(shares - expected) < 5.0 * error).all()


class TestChains:
    def test_error_after_so_many_sweeps(self, rng):
        draws, subsets = rng.integers(0, 2, size=(1, 300, 6)), np.array([[0, 1], [3, 5]])
        truth = np.full((2, 4), 0.25)
        posterior = {"x": SimpleNamespace(to_numpy=lambda: draws)}
        run = TimedRun(SimpleNamespace(posterior=posterior), 0.5 * np.arange(1.0, 301.0)[None])
        found = markov_field.l1_curve(subsets, truth, run)
        assert found["sweeps"][0] == 10 and found["sweeps"][-1] == 300
        assert found["seconds"][-1] == 150.0
        for count, error in zip(found["sweeps"], found["error"], strict=True):
            shares = markov_field.marginals(draws[0, :count], subsets)
            assert error == pytest.approx(np.abs(shares - truth).sum(axis=1).mean(), abs=1e-5)

    @pytest.mark.exhaustive
    def test_exact_updates_have_the_exact_probabilities(self, field, rng):
        states = rng.integers(0, 2, size=(4, 6))
        with field.model():
            found = markov_field.describe_decisions(
                lambda: AusterityGibbs(**EXACT), states, 500, rng
            )
        exact = np.array(markov_field.exact_probabilities(field, states))
        errors = np.abs(found["empirical"] - exact) / np.sqrt(exact * (1.0 - exact) / 500)
        assert errors.max() < 4.5
        assert found["share"] == 1.0 and found["wrong"] == 0.0
