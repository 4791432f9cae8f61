import dataclasses
import math

import numpy as np
import pytest

from pymc_austerity.design import (
    Boundary,
    TestDesign,
    TrialRun,
    acceptance_error,
    average_design,
    constant_looks,
    default_batch_sizes,
    doubling_looks,
    operating_characteristic,
    worst_case_design,
    worst_error,
)
from pymc_austerity.errors import DataError, SettingError
from tests.design.simulation import simulate

N_ROWS = 10_000
LOOKS = [constant_looks, doubling_looks]


@pytest.fixture(scope="module")
def trial():
    """A random walk at the posterior's scale: sums of differences spread over about 1 nat."""
    rng = np.random.default_rng(5)
    log_u = np.log(rng.uniform(size=300))
    return TrialRun(
        mean=rng.normal(-0.7, 1.2, size=300) / N_ROWS,
        standard_deviation=rng.uniform(0.2, 1.2, size=300) / math.sqrt(N_ROWS),
        log_threshold=log_u + rng.normal(0.0, 0.1, size=300),
        log_u=log_u,
        n_rows=N_ROWS,
    )


def promised(trial, batch_size, boundary, looks):
    """Acceptance error, decision error and usage over the trial run, without interpolation."""
    plan = looks(batch_size, trial.n_rows)
    error, usage = operating_characteristic(trial.mu_std, plan, boundary)
    delta = acceptance_error(trial.log_ratio, trial.spread, plan, boundary)
    return np.abs(delta).mean(), error.mean(), usage.mean()


def naive_grid(trial, looks):
    for batch_size in (125, 250, 500, 1_000, 2_500, 5_000):
        for epsilon in (0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2):
            yield batch_size, Boundary(epsilon), looks


@pytest.mark.parametrize("looks", LOOKS)
@pytest.mark.parametrize("measure", ["acceptance", "decision"])
@pytest.mark.few("acceptance-doubling_looks")
def test_average_design_keeps_its_promise_and_beats_a_naive_grid(trial, looks, measure):
    design = average_design(trial, 0.01, measure=measure, looks=looks)
    boundary = Boundary(design.epsilon, design.alpha)
    off, wrong, usage = promised(trial, design.batch_size, boundary, looks)
    assert design.expected_acceptance_error == pytest.approx(off, rel=2e-3)
    assert design.expected_error == pytest.approx(wrong, rel=2e-3)
    assert design.expected_data_fraction == pytest.approx(usage, rel=2e-3)
    assert design.worst_error == pytest.approx(
        worst_error(looks(design.batch_size, N_ROWS), boundary), rel=1e-9
    )
    which = 0 if measure == "acceptance" else 1
    found = (off, wrong)[which]
    assert 0.0098 < found < 0.01002  # as large as is allowed, but for interpolation
    others = [promised(trial, *setting) for setting in naive_grid(trial, looks)]
    allowed = [usage for *errors, usage in others if errors[which] <= 0.01]
    assert len(allowed) > 3
    assert design.expected_data_fraction < min(allowed)


@pytest.mark.few("doubling_looks")
@pytest.mark.parametrize("looks", LOOKS)
def test_worst_case_design_keeps_its_promise_and_beats_a_naive_grid(trial, looks):
    design = worst_case_design(N_ROWS, 0.05, mu_std=trial.mu_std, looks=looks)
    boundary = Boundary(design.epsilon, design.alpha)
    assert 0.049 < worst_error(looks(design.batch_size, N_ROWS), boundary) <= 0.05
    assert design.worst_error <= 0.05 < 20 * design.epsilon
    allowed = [
        promised(trial, batch_size, other, looks)[2]
        for batch_size, other, _ in naive_grid(trial, looks)
        if worst_error(looks(batch_size, N_ROWS), other) <= 0.05
    ]
    assert len(allowed) > 3
    assert design.expected_data_fraction < min(allowed)


@pytest.mark.exhaustive
def test_average_design_reads_less_than_worst_case_design(trial):
    average = average_design(trial, 0.02, looks=doubling_looks)
    worst = worst_case_design(N_ROWS, 0.02, mu_std=trial.mu_std, looks=doubling_looks)
    assert average.expected_data_fraction < worst.expected_data_fraction
    assert average.worst_error > worst.worst_error


@pytest.mark.exhaustive
def test_shape_of_the_boundary_helps(trial):
    sizes = (200, 500, 1_000)
    pocock = average_design(trial, 0.01, alphas=(0.5,), batch_sizes=sizes)
    free = average_design(trial, 0.01, batch_sizes=sizes)
    assert pocock.alpha == 0.5
    assert free.expected_data_fraction < pocock.expected_data_fraction - 0.005


def test_designed_test_errs_as_promised_on_real_rows(rng):
    design = worst_case_design(2_000, 0.05, batch_sizes=[200, 400], alphas=(0.2, 0.5))
    boundary = Boundary(design.epsilon, design.alpha)
    looks = constant_looks(design.batch_size, 2_000)
    (wrong, error), _ = simulate(1e-9, looks, boundary, 2_000, rng, n_repeats=10_000)
    assert abs(wrong - design.worst_error) < 3 * error


def test_easy_decisions_take_one_small_look():
    trial = TrialRun([0.01], [0.001], [0.0], n_rows=N_ROWS)
    design = average_design(trial, 0.01, measure="decision")
    smallest = default_batch_sizes(N_ROWS, constant_looks)[0]
    assert (design.batch_size, design.epsilon) == (smallest, 0.5)
    assert design.expected_data_fraction == pytest.approx(smallest / N_ROWS)


def test_too_few_rows_for_a_test():
    design = worst_case_design(50, 0.01)
    assert (design.batch_size, design.epsilon) == (50, 0.0)
    assert (design.expected_error, design.worst_error) == (0.0, 0.0)
    assert design.expected_data_fraction == pytest.approx(1.0)


def test_it_reads_well():
    design = TestDesign(500, 0.0123, 0.25, 0.02, 0.1, 0.3, 0.01)
    assert str(design) == (
        "batch_size 500, epsilon 0.0123, alpha 0.25: reads 30.0% of the rows; expect 2% of all "
        "decisions to be wrong (acceptance probabilities are off by 1%); a decision exactly at "
        "the threshold is wrong with probability 0.1"
    )
    unknown = dataclasses.replace(design, expected_acceptance_error=math.nan)
    assert "acceptance" not in str(unknown)


def test_default_batch_sizes():
    assert default_batch_sizes(150, constant_looks) == [150]
    for looks in LOOKS:
        sizes = default_batch_sizes(1_000_000, looks)
        assert sizes == sorted(sizes) and sizes[-1] == 500_000
        assert all(len(looks(size, 1_000_000)) <= 100 for size in sizes)


def test_trial_run_in_units_of_the_paper(rng):
    differences = rng.normal(0.1, 2.0, size=400)
    mean, deviation = differences.mean(), differences.std()
    trial = TrialRun([mean], [deviation], [3.0], n_rows=400, log_u=[-0.5])
    assert trial.mu_std[0] == pytest.approx((mean - 3.0 / 400) * math.sqrt(399) / deviation)
    assert trial.log_ratio[0] == pytest.approx(differences.sum() - 3.5)
    assert trial.spread[0] * trial.mu_std[0] == pytest.approx(differences.sum() - 3.0)


def test_acceptance_needs_log_u():
    trial = TrialRun([0.0], [1.0], [0.0], n_rows=1_000)
    with pytest.raises(DataError, match="log_u"):
        average_design(trial, 0.01)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"mean": []}, "shape"),
        ({"log_u": [0.1, 0.2]}, "shape"),
        ({"mean": [math.inf]}, "finite"),
        ({"standard_deviation": [0.0]}, "spread"),
    ],
)
def test_trial_runs_that_cannot_be_used(changed, match):
    arrays = {"mean": [0.0], "standard_deviation": [1.0], "log_threshold": [0.0]} | changed
    with pytest.raises(DataError, match=match):
        TrialRun(**arrays, n_rows=100)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_error": 0.0},
        {"max_error": 0.5},
        {"max_error": 0.1, "alphas": ()},
        {"max_error": 0.1, "batch_sizes": ()},
    ],
)
def test_settings_out_of_range(settings):
    with pytest.raises(SettingError):
        worst_case_design(1_000, **settings)
