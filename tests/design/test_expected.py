"""The expected error of a test, against decisions of a chain in equilibrium."""

import numpy as np
import pytest

from pymc_austerity.design import (
    Boundary,
    constant_looks,
    doubling_looks,
    expected_error,
    operating_characteristic,
)
from pymc_austerity.design.expected import expected_characteristic


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
    assert found == expected_error(looks, boundary, spread, acceptance=acceptance)
    assert abs(read - shares.mean()) < 4.0 * shares.std() / np.sqrt(shares.size) + 0.02 * read
    # the acceptance rate is itself an estimate, which shifts the expected error a little
    assert abs(found - errors.mean()) < 4.0 * errors.std() / np.sqrt(errors.size) + 0.02 * found


def test_never_above_the_worst_case_and_none_for_a_single_look():
    looks, boundary = doubling_looks(100, 10_000), Boundary(0.05)
    worst = operating_characteristic(0.0, looks, boundary).error
    assert expected_error(looks, boundary, 1e6) <= worst
    assert expected_error(constant_looks(100, 100), boundary, 1.0) == 0.0
