import numpy as np
import pytest

from pymc_austerity.design import (
    Boundary,
    average_design,
    constant_looks,
    default_batch_sizes,
    doubling_looks,
    operating_characteristic,
    worst_case_design,
    worst_error,
)

N_ROWS = 10_000
LOOKS = [constant_looks, doubling_looks]


@pytest.fixture(scope="module")
def mu_std():
    """A random walk at the posterior's scale: sums of differences spread over about 1 nat."""
    rng = np.random.default_rng(5)
    distances = rng.normal(-0.7, 1.2, size=300) - np.log(rng.uniform(size=300))
    return distances / rng.uniform(0.2, 1.2, size=300)


def promised(mu_std, batch_size, boundary, looks):
    """Error and usage over the decisions, without interpolation."""
    found = operating_characteristic(mu_std, looks(batch_size, N_ROWS), boundary)
    return found.error.mean(), found.data_fraction.mean()


def naive_grid(looks):
    for batch_size in (125, 250, 500, 1_000, 2_500, 5_000):
        for epsilon in (0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2):
            yield batch_size, Boundary(epsilon), looks


@pytest.mark.few("doubling_looks")
@pytest.mark.parametrize("looks", LOOKS)
def test_average_design_keeps_its_promise_and_beats_a_naive_grid(mu_std, looks):
    design = average_design(mu_std, N_ROWS, 0.01, looks=looks)
    boundary = Boundary(design.epsilon, design.alpha)
    wrong, usage = promised(mu_std, design.batch_size, boundary, looks)
    assert design.expected_error == pytest.approx(wrong, rel=2e-3)
    assert design.expected_data_fraction == pytest.approx(usage, rel=2e-3)
    assert design.worst_error == pytest.approx(
        worst_error(looks(design.batch_size, N_ROWS), boundary), rel=1e-9
    )
    assert 0.0098 < wrong < 0.01002  # as large as is allowed, but for interpolation
    others = [promised(mu_std, *setting) for setting in naive_grid(looks)]
    allowed = [usage for wrong, usage in others if wrong <= 0.01]
    assert len(allowed) > 3
    assert design.expected_data_fraction < min(allowed)


@pytest.mark.few("doubling_looks")
@pytest.mark.parametrize("looks", LOOKS)
def test_worst_case_design_keeps_its_promise_and_beats_a_naive_grid(mu_std, looks):
    design = worst_case_design(N_ROWS, 0.05, mu_std=mu_std, looks=looks)
    boundary = Boundary(design.epsilon, design.alpha)
    assert 0.049 < worst_error(looks(design.batch_size, N_ROWS), boundary) <= 0.05
    assert design.worst_error <= 0.05 < 20 * design.epsilon
    allowed = [
        promised(mu_std, *setting)[1]
        for setting in naive_grid(looks)
        if worst_error(looks(setting[0], N_ROWS), setting[1]) <= 0.05
    ]
    assert len(allowed) > 3
    assert design.expected_data_fraction < min(allowed)
    average = average_design(mu_std, N_ROWS, 0.05, looks=looks)
    assert average.expected_data_fraction < design.expected_data_fraction
    assert average.worst_error > design.worst_error


def test_easy_decisions_take_one_small_look():
    design = average_design([1_000.0], N_ROWS, 0.01)
    smallest = default_batch_sizes(N_ROWS, constant_looks)[0]
    assert (design.batch_size, design.epsilon) == (smallest, 0.5)
    assert design.expected_data_fraction == pytest.approx(smallest / N_ROWS)


def test_too_few_rows_for_a_test():
    design = worst_case_design(50, 0.01)
    assert (design.batch_size, design.epsilon) == (50, 0.0)
    assert (design.expected_error, design.worst_error) == (0.0, 0.0)
    assert design.expected_data_fraction == pytest.approx(1.0)


def test_default_batch_sizes():
    assert default_batch_sizes(150, constant_looks) == [150]
    for looks in LOOKS:
        sizes = default_batch_sizes(1_000_000, looks)
        assert sizes == sorted(sizes) and sizes[-1] == 500_000
        assert all(len(looks(size, 1_000_000)) <= 100 for size in sizes)
