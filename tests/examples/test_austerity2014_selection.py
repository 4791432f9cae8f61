"""The parts of the experiment with variable selection."""

import numpy as np
import pytest
from scipy.special import expit

from examples.austerity2014 import variable_selection
from examples.austerity2014.model_moves import ModelMoves
from examples.austerity2014.timed import sample_chain
from examples.austerity2014.variable_selection import Regression
from tests.references import mean_and_error


@pytest.fixture
def regression(rng):
    """Two covariates of -1 and 1: one that matters, one of which it is hard to say."""
    x = rng.choice([-1.0, 1.0], size=(400, 2))
    y = (rng.random(400) < expit(0.3 + 1.0 * x[:, 0] + 0.25 * x[:, 1])).astype(np.uint8)
    return Regression(x, y, x[:10])


class TestTruth:
    @pytest.mark.exhaustive
    def test_probabilities_of_models_by_quadrature(self, regression, monkeypatch):
        rate = 0.5
        monkeypatch.setattr(variable_selection, "RATE", rate)
        one, both = mass(regression, (True, False)), mass(regression, (True, True))
        prior_of_one, prior_of_both = rate / 2.0, rate**2 / 2.0  # one of two, and two of two
        expected = both * prior_of_both / (both * prior_of_both + one * prior_of_one)
        assert 0.1 < expected < 0.9
        with regression.model():
            draws = variable_selection.exact_run(regression, 4_000)
        assert draws["gamma"][:, 0].all()
        share, error = mean_and_error(draws["gamma"][:, 1])
        assert error < 0.03
        assert abs(share - expected) < 4.0 * error

    def test_normal_approximation_is_at_the_mode(self, regression):
        moves = ModelMoves(regression.x, regression.y)
        about = moves.about(np.array([True, False]))
        design = np.column_stack([regression.x[:, 0], np.ones(400)])
        p = expit(design @ about.mean)
        np.testing.assert_allclose(design.T @ (regression.y - p), 0.01 * about.mean, atol=1e-5)
        information = (design.T * p * (1 - p)) @ design + 0.01 * np.eye(2)
        np.testing.assert_allclose(about.root @ about.root.T @ information, np.eye(2), atol=1e-5)

    def test_what_is_out_of_the_model_is_zero(self, regression, rng):
        moves, point = ModelMoves(regression.x, regression.y), np.array([1.0, 1, 0.4, 0.2, 0.3])
        seen = set()
        for _ in range(200):
            point, log_ratio = moves(point, rng)
            assert np.isfinite(log_ratio)
            assert ((point[:2] == 1.0) == (point[2:4] != 0.0)).all()
            seen.add(tuple(point[:2]))
        assert len(seen) == 4


def mass(regression, included):
    """Integral of likelihood and slab over the coefficients of a model with the first variable."""
    inside = np.array([*included, True])
    about = ModelMoves(regression.x, regression.y).about(np.array(included))
    sd = np.sqrt(np.diag(about.root @ about.root.T))
    grids = [m + s * np.linspace(-6.0, 6.0, 61) for m, s in zip(about.mean, sd, strict=True)]
    cell = np.prod([grid[1] - grid[0] for grid in grids])
    points = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, len(grids))
    rows = np.column_stack([regression.x, np.ones(400), regression.y])
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    logits = points @ kinds[:, :3][:, inside].T
    log_likelihood = (kinds[:, 3] * logits - np.logaddexp(0.0, logits)) @ counts
    k = sum(included)
    log_slab = -k * np.log(np.abs(points[:, :-1]).sum(axis=1))  # and gamma(k) = 1
    log_prior = -0.5 * (points[:, -1] / 10.0) ** 2
    return cell * np.exp(log_likelihood + log_slab + log_prior + 240.0).sum()


class TestRegression:
    def test_predictions_take_coefficients_and_intercept(self, regression):
        draws = np.array([[1.0, 0.0, 0.7, 0.0, -0.2]])
        expected = expit(0.7 * regression.test_x[:, 0] - 0.2)
        np.testing.assert_allclose(regression.predictions(draws), expected[None])


class TestChains:
    def test_start_with_one_variable(self, regression, rng):
        found = [variable_selection.start(regression, rng) for _ in range(20)]
        assert {tuple(start["gamma"]) for start in found} == {(0, 1), (1, 0)}
        for start in found:
            np.testing.assert_allclose(start["beta"], 0.1 * start["gamma"])
            assert expit(start["intercept"]) == pytest.approx(regression.y.mean())

    def test_what_is_kept_of_one(self, regression):
        truth = regression.predictions(np.array([[1.0, 1.0, 1.0, 0.2, 0.3]]))[0]
        with regression.model():
            step = variable_selection.papers_step(0.1)
            start = {"gamma": np.array([1, 0]), "beta": np.array([0.5, 0.0])}
            run = sample_chain(600, step, start | {"intercept": np.array(0.0)}, seed=1)
        found = variable_selection.describe(regression, truth, run)
        assert found["inclusion"][0] > 0.9 and 1.0 <= found["size"] <= 2.0
        gamma = run.draws("gamma")[0, 300:]
        births = np.sum(np.diff(gamma.sum(axis=1)) > 0)
        assert found["moves"]["birth"] == pytest.approx(4.0 * births / 299)
        assert 0.1 < found["moves"]["update"] < 1.0
        assert found["risk"]["steps"][-1] == 600 and 0 <= found["audited"]["all"] < 60
        assert found["audited"]["wrong"] <= found["audited"]["all"]
