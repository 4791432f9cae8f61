"""The parts of the experiment with a Markov random field."""

import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from examples.austerity2014 import field_figure, markov_field  # noqa: E402
from examples.austerity2014.timed import TimedRun  # noqa: E402
from examples.austerity2014.triple_field import TripleField  # noqa: E402
from pymc_austerity import AusterityGibbs  # noqa: E402

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
                lambda: AusterityGibbs(**EXACT),
                states,
                500,
                rng,
            )
        exact = np.array(markov_field.exact_probabilities(field, states))
        errors = np.abs(found["empirical"] - exact) / np.sqrt(exact * (1.0 - exact) / 500)
        assert errors.max() < 4.5
        assert found["share"] == 1.0 and found["wrong"] == 0.0


class TestVerdicts:
    NAMES = ("epsilon = 0", "epsilon = 0.05", "epsilon = 0.25")

    def results(self, bias, *, noise=0.01):
        """Errors that fall like the root of sweeps, down to a bias; cheaper with epsilon."""
        sweeps = np.unique(np.geomspace(10, 4_000, 40).astype(int))
        steps = dict(zip((*self.NAMES, "defaults"), (1_000, 1_500, 3_000, 1_500), strict=True))

        def chain(name, factor):
            kept = sweeps[sweeps <= steps[name]]
            kept = np.append(kept[kept < steps[name]], steps[name])
            error = factor * np.hypot(10.0 / np.sqrt(kept), bias.get(name, 0.0))
            return {
                "before": 0.0,
                "sweeps": kept.tolist(),
                "seconds": (0.01 * kept).tolist(),
                "error": error.tolist(),
            }

        decision = {"empirical": [0.2, 0.8], "share": 0.5, "wrong": 0.1}
        papers = {name: steps[name] for name in self.NAMES}
        return {
            "budget": {"seconds": 1_000.0, "ratio": 1.0, "steps": papers},
            "l1": {n: [chain(n, 1.0 - noise), chain(n, 1.0 + noise)] for n in steps},
            "decisions": dict.fromkeys(steps, decision),
            "exact_probability": [0.2, 0.8],
            "n_repeats": 1_000,
            "truth_error": 0.01,
        }

    def test_epsilon_is_ahead_until_its_bias_shows(self):
        """The error of the largest meets the exact one where 100 / n = bias^2 + 100 / (3 n)."""
        found = field_figure.verdict_on_errors(self.results({"epsilon = 0.25": 0.5}))
        assert found.agrees
        rows = {quantity: values for quantity, *values in found.numbers.rows}
        *others, largest, defaults = rows["exact is better after (seconds)"]
        assert others == ["–", "not reached"] and defaults == "–"
        assert float(largest) == pytest.approx((100 - 100 / 3) / 0.5**2, rel=0.04)

    @pytest.mark.parametrize(
        ("bias", "noise"),
        [({}, 0.01), ({"epsilon = 0.25": 0.5}, 0.9)],
        ids=["no bias", "chance"],
    )
    def test_differences_have_to_be_beyond_chance(self, bias, noise):
        found = field_figure.verdict_on_errors(self.results(bias, noise=noise))
        assert not found.agrees and "which may be chance" in found.ours

    def test_never_ahead(self):
        results = self.results({"epsilon = 0.25": 9.0})
        assert field_figure.overtaken(results, "epsilon = 0.25") == "12.5"

    def test_conditional_probabilities_are_pulled_towards_one_half(self):
        results = self.results({})
        for empirical, agrees in (([0.3, 0.7], True), ([0.1, 0.9], False)):
            wrong = {"empirical": empirical, "share": 0.1, "wrong": 0.3}
            results["decisions"]["epsilon = 0.25"] = wrong
            found = field_figure.verdict_on_conditionals(results)
            assert found.agrees is agrees
            assert "0.099 with epsilon = 0.25" in found.ours
            errors, pull = found.numbers.rows
            assert errors == ("root mean square error", "0.000", "0.000", "0.099", "0.000")
            assert pull[3] == ("0.100" if agrees else "-0.100")
