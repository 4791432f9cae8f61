"""The parts of the experiment with an epsilon that shrinks."""

import numpy as np
import pytest
from scipy.special import expit

from examples.austerity2014 import balance, shrinking_epsilon
from examples.austerity2014.audited_chain import AuditedChain
from examples.shared.digits import Digits, logistic_regression

N_STATES = 12


@pytest.fixture(scope="module")
def digits():
    """A small logistic regression."""
    rng = np.random.default_rng(1)
    design = rng.normal(size=(900, 3))
    labels = (rng.random(900) < expit(design[:, 0])).astype("uint8")
    return Digits(design, labels, rng.normal(size=(20, 3)), labels[:20])


def kernel(acceptance):
    """Transitions of a random walk on a ring."""
    here = np.arange(N_STATES)
    matrix = np.zeros((N_STATES, N_STATES))
    for side, move in enumerate((-1, 1)):
        matrix[here, (here + move) % N_STATES] += acceptance[side] / 2.0
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def invariant(matrix):
    """Distribution that transitions leave as it is."""
    values, vectors = np.linalg.eig(matrix.T)
    vector = np.real(vectors[:, np.argmax(np.real(values))])
    return vector / vector.sum()


class Ring:
    """A random walk whose acceptance probabilities are off by known errors."""

    def __init__(self):
        where = np.arange(N_STATES)
        weights = 1.0 + 0.5 * np.cos(2.0 * np.pi * where / N_STATES)
        target = weights / weights.sum()
        exact = np.array([np.minimum(1.0, np.roll(target, -move) / target) for move in (-1, 1)])
        wrong = 0.05 * np.array([np.cos(where), np.cos(where + 1.0)])
        self.approximate = np.clip(exact + wrong, 0.0, 1.0)
        self.errors = self.approximate - exact
        symmetric = np.diag(target**0.5) @ kernel(exact) @ np.diag(target**-0.5)
        values, vectors = np.linalg.eigh(symmetric)
        self.eigenvalue, self.f = values[-2], vectors[:, -2] / target**0.5
        self.bias = invariant(kernel(self.approximate)) @ self.f - target @ self.f

    def simulated(self, rng, n, n_chains):
        """Values of f, and effects of the errors on proposals from the same states."""
        state = rng.choice(N_STATES, size=n_chains, p=invariant(kernel(self.approximate)))
        values, effects = np.empty((n, n_chains)), np.empty((n, n_chains))
        for step in range(n):
            side = rng.integers(0, 2, size=n_chains)
            proposed = (state + 2 * side - 1) % N_STATES
            effects[step] = self.errors[side, state] * (self.f[proposed] - self.f[state])
            accept = rng.random(n_chains) < self.approximate[side, state]
            state = np.where(accept, proposed, state)
            values[step] = self.f[state]
        return values, effects


class TestBias:
    ring = Ring()

    def test_mean_effect_solves_poissons_equation(self):
        ring = self.ring
        moves = np.array([np.roll(ring.f, -move) - ring.f for move in (-1, 1)])
        effect = invariant(kernel(ring.approximate)) @ (ring.errors * moves).mean(axis=0)
        time = (1.0 + ring.eigenvalue) / (1.0 - ring.eigenvalue)
        assert abs(ring.bias) > 0.005
        assert (time + 1.0) / 2.0 * effect == pytest.approx(ring.bias)

    def test_estimates_from_draws(self, rng):
        values, effects = self.ring.simulated(rng, 8_000, 200)
        factor = balance.poisson_factor(values, steps_per_draw=1)
        assert factor.mean() == pytest.approx(1.0 / (1.0 - self.ring.eigenvalue), rel=0.15)
        factor = np.full(200, factor.mean())
        squared = balance.squared_bias(effects, factor)
        assert squared == pytest.approx(self.ring.bias**2, rel=0.3)
        assert balance.squared_bias(effects[:1], factor) == 0.0

    def test_thinned_draws_give_the_factor_of_steps(self, rng):
        values, _ = self.ring.simulated(rng, 16_000, 200)
        factors = [balance.poisson_factor(values[::n], n).mean() for n in (1, 5)]
        assert factors[1] == pytest.approx(factors[0], rel=0.1)


class TestAudit:
    @pytest.mark.exhaustive
    def test_log_ratio_is_that_of_the_model(self, digits, rng):
        log_density = logistic_regression(digits.design, digits.labels).compile_logp()
        points = rng.normal(size=(2, 3))
        found, spread = shrinking_epsilon.log_ratio(digits, *points)
        assert found == pytest.approx(
            log_density({"beta": points[0]}) - log_density({"beta": points[1]})
        )
        assert spread > 0.0

    def test_effects_are_errors_of_acceptance_times_moves(self, digits, rng):
        audit, points = shrinking_epsilon.walk_audit(digits), rng.normal(size=(4, 3))
        assert audit(points, 0.2, rng).shape == (4, 20)
        assert not audit(points, 0.0, rng).any()

    @pytest.mark.exhaustive
    def test_gradients_are_those_of_the_model(self, digits, rng):
        gradient = logistic_regression(digits.design, digits.labels).compile_dlogp()
        points = rng.normal(size=(2, 3))
        for point, found in zip(points, shrinking_epsilon.gradients(digits, points), strict=True):
            np.testing.assert_allclose(found, gradient({"beta": point}))


class TestExperiment:
    def test_rows_decide_which_draws_count(self, digits, rng):
        true = shrinking_epsilon.predictions(digits, np.zeros((1, 3)))[0]
        truth = {"predictions": true.tolist()}
        draws = np.vstack([np.zeros((5, 3)), np.ones((5, 3))])
        chain = AuditedChain(draws, 100.0 * np.arange(1, 11), 300.0)
        check = {"n_draws": 5, "epsilon": 0.2, "squared_bias": 0.0, "variance": 1.0}
        budgets = np.array([50.0, 500.0, 1_000.0])
        found = shrinking_epsilon.describe(digits, truth, budgets, chain, [check])
        assert found["risk"][:2] == [0.0, 0.0] and found["risk"][2] > 0.0
        assert found["n_steps"] == 100
        assert found["checks"] == [{**check, "rows": 500.0}]

    def test_systematic_error_is_what_chains_share(self, rng):
        errors = 0.3 + 0.1 * rng.normal(size=(8, 2_000))
        truth = {"predictions": np.zeros(2_000), "truth_error": 0.0}
        found = shrinking_epsilon.systematic([{"mean": each} for each in errors], truth)
        assert found == pytest.approx(0.09, rel=0.05)
