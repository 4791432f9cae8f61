"""Wrong decisions: as many with windows as with fresh rows, and as many as theory says."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

N_ROWS, BATCH_SIZE, N_ORDERS, N_QUESTIONS = 4_000, 200, 60, 40
EPSILON = 0.1


def load_example():
    """The example is a script, not a part of the package."""
    path = Path(__file__).parents[2] / "examples" / "decision_errors.py"
    spec = importlib.util.spec_from_file_location("decision_errors", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


example = load_example()


@pytest.fixture(scope="module")
def sampler():
    """Metropolis-Hastings for a logistic regression on synthetic rows."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N_ROWS, 3))
    y = (rng.random(N_ROWS) < 1 / (1 + np.exp(-x @ [0.5, -0.5, 0.2]))).astype("int8")
    with example.logistic_regression(example.with_intercept(x), y):
        return example.exact_sampler(n_parameters=4)


def near_the_mode(rng):
    """Points as far from the coefficients of the simulation as posterior draws are."""
    return np.array([0.0, 0.5, -0.5, 0.2]) + rng.normal(scale=0.04, size=4)


def questions_at_the_border(sampler, rng):
    """Thresholds equal to the sum of all differences, but for rounding: mu_std is 0."""
    for _ in range(N_QUESTIONS):
        question = example.ask(sampler, near_the_mode(rng), rng)
        all_rows = sampler.machinery.sampling.begin(question.proposed, question.current, rng).look()
        yield replace(question, log_threshold=all_rows.total - 1e-9)


def questions_of_a_chain(sampler, rng):
    return (example.ask(sampler, near_the_mode(rng), rng) for _ in range(N_QUESTIONS))


def error_rates(sampler, ask, rng):
    """Error rate for every order in which rows are stored; one column for each way of drawing.

    Windows share the order in which rows are stored, so that their errors are independent between
    orders only: the standard error is taken from the spread over orders.
    """
    rates = []
    for _ in range(N_ORDERS):
        all_rows = sampler.machinery.sampling
        questions = list(ask(sampler, rng))
        exact = [example.answer(all_rows, q, epsilon=0.0, rng=rng) for q in questions]
        rates.append([])
        windows = example.on_windows(all_rows, rng, BATCH_SIZE)
        for sampling in (windows, example.on_fresh_rows(all_rows, BATCH_SIZE)):
            made = [example.answer(sampling, q, epsilon=EPSILON, rng=rng) for q in questions]
            wrong, _ = example.judge(made, exact, N_ROWS)
            rates[-1].append(wrong.mean())
    return np.array(rates)


def mean_and_standard_error(values):
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


class TestSyntheticRows:
    def test_windows_err_as_often_as_fresh_rows(self, sampler, rng):
        rates = error_rates(sampler, questions_of_a_chain, rng)
        difference, standard_error = mean_and_standard_error(rates[:, 0] - rates[:, 1])
        assert standard_error < 0.02
        assert abs(difference) < 4 * standard_error
        assert (rates.mean(axis=0) > 0.02).all()  # there are errors to compare

    def test_errors_on_the_border_are_those_of_theory(self, sampler, rng):
        rates = error_rates(sampler, questions_at_the_border, rng)
        theory = example.Theory.simulate(EPSILON, N_ROWS, BATCH_SIZE, rng)
        mean, standard_error = mean_and_standard_error(rates)
        assert (standard_error < 0.02).all()
        assert (abs(mean - theory.error[0]) < 4 * standard_error).all()


class TestTheory:
    def test_error_and_usage_fall_with_the_distance(self, rng):
        theory = example.Theory.simulate(0.05, 10_000, 500, rng)
        noise = 4 * np.sqrt(0.25 / 20_000)
        assert (np.diff(theory.error) < noise).all() and theory.error[-1] < 1e-3
        assert (np.diff(theory.share) < noise).all() and theory.share[-1] == pytest.approx(0.05)

    def test_at_the_border_the_test_is_right_by_chance_or_reads_all_rows(self, rng):
        """Near 0.28 for 10,000 rows, 500 a look and epsilon 0.05; a coin flip for one look."""
        noise = 4 * np.sqrt(0.25 / 20_000)
        assert abs(example.Theory.simulate(0.05, 10_000, 500, rng).error[0] - 0.28) < noise + 0.005
        assert abs(example.Theory.simulate(0.5, 10_000, 500, rng).error[0] - 0.5) < noise


class TestScript:
    def test_finds_the_mode(self, rng):
        design = example.with_intercept(rng.normal(size=(300, 2)))
        labels = (rng.random(300) < 0.3).astype("uint8")
        mode = example.posterior_mode(design, labels)
        residual = labels - 1.0 / (1.0 + np.exp(-design @ mode))
        np.testing.assert_allclose(design.T @ residual, mode / example.PRIOR_SD**2, atol=1e-8)

    def test_says_what_is_missing(self, monkeypatch, tmp_path):
        monkeypatch.delenv("PYMC_AUSTERITY_DATA", raising=False)
        with pytest.raises(SystemExit, match="PYMC_AUSTERITY_DATA=FOLDER"):
            example.find_data(None)
        with pytest.raises(SystemExit, match=r"There is no mnist_7v9\.npz in"):
            example.find_data(str(tmp_path))

    def test_components_are_uncorrelated_and_ordered(self, rng):
        pixels = rng.integers(0, 256, size=(200, 30)) * np.linspace(0.1, 1.0, 30)
        scores = example.principal_components(pixels, 5)
        covariance = np.cov(scores, rowvar=False)
        variances = np.diag(covariance)
        assert scores.shape == (200, 5)
        assert (np.diff(variances) < 0.0).all()
        np.testing.assert_allclose(covariance, np.diag(variances), atol=1e-12)


@pytest.mark.slow
def test_digits(data_folder, rng):
    """On real data: both ways of drawing rows err as often as theory says, and read as much."""
    data = np.load(example.find_data(str(data_folder)))
    scores = example.principal_components(data["X_train"], example.N_COMPONENTS)
    design, labels = example.with_intercept(scores), data["y_train"]
    mode = example.posterior_mode(design, labels)
    with example.logistic_regression(design, labels):
        sampler = example.exact_sampler(mode.size)
        points = example.posterior_points(sampler, mode, 400, thin=5, burn_in=200)
    questions = [example.ask(sampler, point, rng) for point in points]
    all_rows = sampler.machinery.sampling
    exact = [example.answer(all_rows, q, epsilon=0.0, rng=rng) for q in questions]
    theory = example.Theory.simulate(EPSILON, sampler.n_rows, example.BATCH_SIZE, rng)
    error, share = theory.at(np.array([right.standardized_mean for right in exact]))
    windows, fresh = example.measure(all_rows, questions, exact, epsilon=EPSILON, rng=rng)
    for outcome in (windows, fresh):
        low, high = outcome.interval  # 95 %: twice as far is about 4 standard errors
        assert abs(outcome.error_rate - error.mean()) < high - low
    noise = np.std(fresh.share - share) / np.sqrt(share.size)
    assert abs(fresh.share.mean() - share.mean()) < 4 * noise
