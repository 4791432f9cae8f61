"""Wrong decisions: as many with windows as with fresh rows, and as many as theory says."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.special import expit

from examples.decision_errors import __main__ as command
from examples.decision_errors import acceptance, asked, shown
from examples.shared import digits, triples
from pymc_austerity.design import Boundary, constant_looks, operating_characteristic

N_ROWS, BATCH_SIZE, N_ORDERS, N_QUESTIONS = 4_000, 200, 60, 40
EPSILON = 0.1


@pytest.fixture(scope="module")
def sampler():
    """Metropolis-Hastings for a logistic regression on synthetic rows."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N_ROWS, 3))
    y = (rng.random(N_ROWS) < 1 / (1 + np.exp(-x @ [0.5, -0.5, 0.2]))).astype("int8")
    with digits.logistic_regression(digits.with_intercept(x), y):
        return digits.papers_walk(4, epsilon=0.0)


def near_the_mode(rng):
    """Points as far from the coefficients of the simulation as posterior draws are."""
    return np.array([0.0, 0.5, -0.5, 0.2]) + rng.normal(scale=0.04, size=4)


def questions_at_the_border(sampler, rng):
    """Thresholds equal to the sum of all differences, but for rounding: mu_std is 0."""
    for _ in range(N_QUESTIONS):
        question = triples.ask(sampler, near_the_mode(rng), rng)
        all_rows = sampler.target.sampling.begin(question.proposed, question.current, rng).look()
        yield replace(question, log_threshold=all_rows.total - 1e-9)


def questions_of_a_chain(sampler, rng):
    return (triples.ask(sampler, near_the_mode(rng), rng) for _ in range(N_QUESTIONS))


def error_rates(sampler, ask, rng):
    """Error rate for every order in which rows are stored; one column for each way of drawing.

    Windows share the order in which rows are stored, so that their errors are independent between
    orders only: the standard error is taken from the spread over orders.
    """
    rates = []
    for _ in range(N_ORDERS):
        all_rows = sampler.target.sampling
        questions = list(ask(sampler, rng))
        exact = [asked.answer(all_rows, q, epsilon=0.0, rng=rng) for q in questions]
        rates.append([])
        windows = asked.on_windows(all_rows, rng, BATCH_SIZE)
        for sampling in (windows, asked.on_fresh_rows(all_rows, BATCH_SIZE)):
            made = [asked.answer(sampling, q, epsilon=EPSILON, rng=rng) for q in questions]
            wrong, _ = asked.judge(made, exact, N_ROWS)
            rates[-1].append(wrong.mean())
    return np.array(rates)


def mean_and_standard_error(values):
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


class TestSyntheticRows:
    @pytest.mark.exhaustive
    def test_windows_err_as_often_as_fresh_rows(self, sampler, rng):
        rates = error_rates(sampler, questions_of_a_chain, rng)
        difference, standard_error = mean_and_standard_error(rates[:, 0] - rates[:, 1])
        assert standard_error < 0.02
        assert abs(difference) < 4 * standard_error
        assert (rates.mean(axis=0) > 0.02).all()  # there are errors to compare

    @pytest.mark.exhaustive
    def test_errors_on_the_border_are_those_of_theory(self, sampler, rng):
        rates = error_rates(sampler, questions_at_the_border, rng)
        looks = constant_looks(BATCH_SIZE, N_ROWS)
        theory = operating_characteristic(0.0, looks, Boundary(EPSILON))
        mean, standard_error = mean_and_standard_error(rates)
        assert (standard_error < 0.02).all()
        assert (abs(mean - float(theory.error)) < 4 * standard_error).all()


class TestAcceptance:
    def test_differences_are_those_of_the_full_model(self, sampler, rng):
        question = triples.ask(sampler, near_the_mode(rng), rng)
        all_rows = sampler.target.sampling.begin(question.proposed, question.current, rng).look()
        rows = triples.differences(sampler, question)
        assert rows.shape == (N_ROWS,)
        assert rows.sum() == pytest.approx(all_rows.total, rel=1e-9)

    def test_trial_run_knows_what_all_rows_say(self, sampler, rng):
        asked_about = [triples.ask(sampler, near_the_mode(rng), rng) for _ in range(5)]
        rows = [triples.differences(sampler, question) for question in asked_about]
        trial = triples.trial_run(rows, asked_about)
        for k, question in enumerate(asked_about):
            exact = asked.answer(sampler.target.sampling, question, epsilon=0.0, rng=rng)
            assert trial.mu_std[k] == pytest.approx(exact.standardized_mean, rel=1e-3)
            assert trial.log_ratio[k] == pytest.approx(
                rows[k].sum() - question.log_threshold + question.log_u, rel=1e-6
            )

    def test_acceptance_probabilities_err_as_theory_says(self, rng):
        rows = [rng.normal(mean, 0.01, size=10_000) for mean in (-1e-4, 0.0, 5e-5)]
        asked_about = [triples.Question(np.zeros(1), np.zeros(1), -1.0, -1.0) for _ in rows]
        trial = triples.trial_run(rows, asked_about)
        (found,) = acceptance.acceptance_errors(rows, trial, [0.1], n_orders=400, rng=rng)
        assert np.abs(found.theory).min() > 0.02
        np.testing.assert_allclose(found.measured, found.theory, atol=0.04)
        size, standard_error = found.size
        assert size > 0.0 and standard_error > 0.0


class TestData:
    def test_finds_the_mode(self, rng):
        design = digits.with_intercept(rng.normal(size=(300, 2)))
        labels = (rng.random(300) < 0.3).astype("uint8")
        mode, information = digits.posterior_mode(design, labels)
        p = expit(design @ mode)
        np.testing.assert_allclose(design.T @ (labels - p), 10.0 * mode, atol=1e-8)
        hessian = (design.T * p * (1 - p)) @ design + 10.0 * np.eye(3)
        np.testing.assert_allclose(information, hessian, rtol=1e-8)


def small_digits(rng, n_rows=1_500, n_test=50):
    """Rows with as many columns as a test needs."""
    design = digits.with_intercept(rng.normal(size=(n_rows + n_test, 3)))
    labels = (rng.random(len(design)) < expit(design @ [0.2, 0.5, -0.5, 0.2])).astype("uint8")
    return digits.Digits(design[:n_rows], labels[:n_rows], design[n_rows:], labels[n_rows:])


def test_the_whole_example(rng):
    sizes = {"n_triples": 80, "thin": 2, "burn_in": 20, "n_pairs": 8, "n_orders": 20}
    text, pictures = command.find_errors(small_digits(rng), **sizes)
    assert "80 triples, 1,500 rows, 500 at a look" in text
    assert text.count("| 0.05 | windows |") == 1 and text.count("| 0.05 | fresh |") == 1
    assert "Acceptance probabilities of 8 of the pairs, each from 20 random orders" in text
    over_epsilon = pictures["decision_errors_epsilon.png"]
    assert [axis.get_ylabel() for axis in over_epsilon.axes] == ["error", "share of the data read"]
    share = over_epsilon.axes[1].lines[0].get_ydata()
    assert share.size == shown.EPSILON_GRID.size and (np.diff(share) < 0.0).all()
    assert len(pictures) == 2
    plt.close("all")
