"""Errors and costs of tests, against simulation, integrals and the recursion of the paper."""

import math
import time

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from pymc_austerity.design import (
    Boundary,
    Looks,
    constant_looks,
    doubling_looks,
    expected_characteristic,
    operating_characteristic,
    worst_error,
)
from pymc_austerity.sequential import StudentTTest, exceeds
from tests.design.simulation import counts_of, population, quantiles_of, sequential_tests, simulate
from tests.streams import survey_of

N_ROWS = 2_000
SETTINGS = [
    # mu_std, looks, epsilon, alpha
    (1e-9, constant_looks(100, N_ROWS), 0.05, 0.5),
    (1e-9, doubling_looks(125, N_ROWS), 0.02, 0.5),
    (0.3, constant_looks(100, N_ROWS), 0.05, 0.5),
    (0.5, constant_looks(200, N_ROWS), 0.1, 0.5),
    (0.5, doubling_looks(100, N_ROWS), 0.01, 0.5),
    (1.0, constant_looks(300, N_ROWS), 0.2, 0.5),
    (1.0, doubling_looks(100, N_ROWS), 0.05, 0.25),
    (0.3, constant_looks(200, N_ROWS), 0.05, 0.0),
    (2.0, constant_looks(100, N_ROWS), 0.3, 0.5),
    (0.7, constant_looks(250, N_ROWS), 0.1, 0.8),
]
MU_STD = np.array([0.0, 0.1, 1.0, 10.0, 1_000.0])
LOOKS, BOUNDARY = constant_looks(500, 10_000), Boundary(0.05)


@pytest.mark.parametrize("epsilon", [0.02, 0.2])
def test_the_simulation_decides_as_the_package_does(epsilon, rng):
    looks, boundary = constant_looks(150, 1_000), Boundary(epsilon)
    differences = population(0.4, 1_000, rng)
    orders = rng.permuted(np.tile(np.arange(1_000), (200, 1)), axis=1)
    accepted, used = sequential_tests(
        differences, orders, counts_of(looks.shares, 1_000), quantiles_of(boundary, looks, 1_000)
    )
    for order, accept, n_seen in zip(orders, accepted, used, strict=True):
        survey = survey_of(differences[order], 150)
        decision = exceeds(survey, 0.0, rule=StudentTTest(epsilon))
        assert (decision.accept, decision.n_rows_used) == (accept, n_seen)


@pytest.mark.parametrize("setting", range(len(SETTINGS)))
@pytest.mark.few("0")
def test_error_and_usage_are_those_of_the_test_itself(setting):
    mu_std, looks, epsilon, alpha = SETTINGS[setting]
    boundary, rng = Boundary(epsilon, alpha), np.random.default_rng(setting)
    (wrong, wrong_se), (used, used_se) = simulate(mu_std, looks, boundary, N_ROWS, rng)
    error, data_fraction = operating_characteristic(mu_std, looks, boundary)
    assert abs(wrong - error) < 3 * wrong_se
    assert abs(used - data_fraction) < 3 * used_se


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("mu_std", [0.0, 0.4, 3.0])
def test_three_looks_are_a_double_integral(alpha, mu_std):
    """Rectangles of a bivariate normal distribution, from a routine of its own."""
    looks, boundary = Looks([0.15, 0.5, 1.0]), Boundary(0.08, alpha)
    tau_1, tau_2 = looks.information
    first, second = boundary.at(looks)
    mean = mu_std * np.sqrt([tau_1, tau_2])
    correlation = math.sqrt(tau_1 / tau_2)
    law = multivariate_normal(mean, [[1.0, correlation], [correlation, 1.0]])

    def within(low, high):
        return law.cdf(high, lower_limit=low)

    go_on = norm.cdf(first - mean[0]) - norm.cdf(-first - mean[0])
    error = norm.cdf(-first - mean[0]) + within([-first, -40.0], [first, -second])
    usage = 0.15 + 0.35 * go_on + 0.5 * within([-first, -second], [first, second])
    found = operating_characteristic(mu_std, looks, boundary)
    assert found.error == pytest.approx(error, abs=1e-9)
    assert found.data_fraction == pytest.approx(usage, abs=1e-9)


def test_paper_recursion_gives_the_same():
    """The conditional means and variances of section 5.1, drawn one look after another."""
    mu_std, looks, boundary, n = 0.6, doubling_looks(50, 1_000), Boundary(0.07, 0.3), 400_000
    rng = np.random.default_rng(0)
    shares, bounds = np.append(0.0, looks.shares), boundary.at(looks)
    z, alive, wrong, used = np.zeros(n), np.ones(n, dtype=bool), 0, np.zeros(n)
    for before, now, bound in zip(shares[:-2], shares[1:-1], bounds, strict=True):
        drift = mu_std * (now - before) / ((1 - before) * math.sqrt(now * (1 - now)))
        kept = math.sqrt(before * (1 - now) / (now * (1 - before)))
        variance = (now - before) / (now * (1 - before))
        z = drift + kept * z + math.sqrt(variance) * rng.normal(size=n)
        stop = alive & (np.abs(z) > bound)
        wrong += np.count_nonzero(stop & (z < 0))
        used[stop] = now
        alive &= ~stop
    used[alive] = 1.0
    error, data_fraction = operating_characteristic(mu_std, looks, boundary)
    assert abs(wrong / n - error) < 3 * math.sqrt(error * (1 - error) / n)
    assert abs(used.mean() - data_fraction) < 3 * used.std() / math.sqrt(n)


@pytest.mark.parametrize(
    ("looks", "epsilon"),
    [
        (Looks([1.0]), 0.5),
        (constant_looks(10, 10), 0.5),
        (doubling_looks(7, 7), 0.5),
        (constant_looks(5, 100), 0.0),
    ],
)
def test_all_rows_never_err(looks, epsilon):
    error, data_fraction = operating_characteristic(MU_STD, looks, Boundary(epsilon))
    assert np.all(error == 0.0)
    assert np.all(data_fraction == 1.0)


def test_epsilon_one_half_is_one_look():
    looks = constant_looks(20, 100)
    error, data_fraction = operating_characteristic(MU_STD, looks, Boundary(0.5))
    np.testing.assert_allclose(error, norm.sf(MU_STD * 0.5), rtol=1e-13)
    assert np.all(data_fraction == 0.2)


@pytest.mark.parametrize("boundary", [Boundary(0.05), Boundary(0.01, 0.0), Boundary(0.1, 0.7)])
def test_worst_case_is_beside_the_threshold(boundary):
    looks = constant_looks(50, 1_000)
    worst = worst_error(looks, boundary)
    beside = operating_characteristic([1e-7, -1e-7], looks, boundary).error
    np.testing.assert_allclose(beside, worst, atol=1e-6)
    error, data_fraction = operating_characteristic(np.linspace(0, 60, 100), looks, boundary)
    assert np.all(np.diff(error) <= 0.0) and error[-1] < 1e-12 < worst
    assert np.all(np.diff(data_fraction) <= 1e-14)


def test_far_boundaries_and_distant_means():
    """O'Brien and Fleming's boundary lies 80 standard errors out when a look sees 1 in 1,000."""
    looks, boundary = constant_looks(100, 100_000), Boundary(0.005, 0.0)
    first = boundary.at(looks)[0]
    mu_std = (first + np.array([-9.0, 0.0, 9.0])) / math.sqrt(looks.information[0])
    error, data_fraction = operating_characteristic(mu_std, looks, boundary)
    assert first > 80
    assert np.all(error == 0.0)
    # none, half and all of the decisions are taken at the first look, the rest at the second
    np.testing.assert_allclose(data_fraction, [0.002, 0.0015, 0.001], atol=1e-9)


def test_effective_shares_change_the_error_and_shares_the_cost():
    boundary = Boundary(0.05)
    shares, effective = [0.01, 0.02, 1.0], [0.3, 0.6, 1.0]
    mixed = operating_characteristic(0.5, Looks(shares, effective), boundary)
    uniform = operating_characteristic(0.5, Looks(effective), boundary)
    assert mixed.error == uniform.error
    go_on = (uniform.data_fraction - 0.3 - 0.3 * _go_on(0.5, 0.3, boundary)) / 0.4
    expected = 0.01 + 0.01 * _go_on(0.5, 0.3, boundary) + 0.98 * go_on
    assert mixed.data_fraction == pytest.approx(expected, rel=1e-12)


def _go_on(mu_std, share, boundary):
    drift, bound = mu_std * math.sqrt(share / (1 - share)), norm.isf(boundary.epsilon)
    return norm.cdf(bound - drift) - norm.cdf(-bound - drift)


@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
def test_shape_is_kept(shape):
    found = operating_characteristic(np.ones(shape), constant_looks(10, 100), Boundary(0.1))
    assert found.error.shape == found.data_fraction.shape == shape


def test_is_fast_enough_for_a_search():
    """200 distances and 20 looks below 50 ms; the fastest of a few runs, other work aside."""
    mu_std, looks, seconds = np.linspace(0, 10, 200), constant_looks(500, 10_000), []
    for _ in range(10):
        start = time.perf_counter()
        operating_characteristic(mu_std, looks, Boundary(0.05))
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.05


@pytest.mark.parametrize("spread", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("deviation", [0.02, 0.5, 2.0])
def test_mean_over_decisions(spread, deviation):
    """Log-ratios of a reversible kernel are normal with a mean of minus half their variance."""
    rng = np.random.default_rng(1)
    log_ratio = rng.normal(-0.5 * deviation**2, deviation, size=20_000)
    distances = (log_ratio - np.log(rng.random(log_ratio.size))) / spread
    looks, boundary = constant_looks(500, 10_000), Boundary(0.05)
    errors, shares = operating_characteristic(distances, looks, boundary)
    acceptance = np.minimum(1.0, np.exp(log_ratio)).mean()
    found, read = expected_characteristic(looks, boundary, spread, acceptance=acceptance)
    assert abs(read - shares.mean()) < 4.0 * shares.std() / np.sqrt(shares.size) + 0.02 * read
    # the acceptance rate is itself an estimate, which shifts the expected error a little
    assert abs(found - errors.mean()) < 4.0 * errors.std() / np.sqrt(errors.size) + 0.02 * found


def test_never_above_the_worst_case_and_none_for_a_single_look():
    looks, boundary = doubling_looks(100, 10_000), Boundary(0.05)
    worst = operating_characteristic(0.0, looks, boundary).error
    assert expected_characteristic(looks, boundary, 1e6)[0] <= worst
    assert expected_characteristic(constant_looks(100, 100), boundary, 1.0) == (0.0, 1.0)
