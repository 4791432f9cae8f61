"""Rounding of rows, measured: in proportion to their terms, blind to what violates a bound."""

import math

import numpy as np
import pytest
from scipy import special

from pymc_austerity.exact import ROUNDING, measured_rounding

START, MOVE = np.array([0.4, -0.2]), np.array([1.0, 0.7])


def poisson_residuals(mean, rng, n_rows=500):
    """Rows with a mean of so much; a move of usual size changes a predictor by 1/sqrt(mean)."""
    z = rng.normal(size=(n_rows, 2)) / math.sqrt(mean * n_rows)
    counts, center = rng.poisson(mean, n_rows).astype(float), math.log(mean)

    def residuals(new, old):
        a, b = center + z @ new, center + z @ old
        values = [counts * x - np.exp(x) - special.gammaln(counts + 1.0) for x in (a, b)]
        s, t = z @ new, z @ old
        first, second = counts - mean, -mean
        return values[0] - values[1] - first * (s - t) - 0.5 * second * (s * s - t * t)

    return residuals


def test_is_least_for_rows_of_ordinary_size(rng):
    assert measured_rounding(poisson_residuals(30.0, rng), START, MOVE) == ROUNDING


@pytest.mark.parametrize("mean", [1e7, 1e9])
def test_is_in_proportion_to_the_terms_and_covers_what_happens(mean, rng):
    residuals = poisson_residuals(mean, rng)
    found = measured_rounding(residuals, START, MOVE)
    ulp = np.finfo(float).eps * mean * math.log(mean)
    assert ulp < found < 500.0 * ulp
    # remainders of third order are below 1e-3 of the rounding here
    tiny = [abs(residuals(1e-3 * a, 1e-3 * b)).max() for a, b in rng.normal(size=(200, 2, 2))]
    assert ROUNDING < max(tiny) < found


def test_does_not_take_violations_for_rounding(rng):
    """A row that changes by a nat over the move, as a cubic or at a kink, stays a violation."""
    for change in (lambda x: (x @ MOVE / (MOVE @ MOVE)) ** 3, lambda x: abs(x[0])):
        found = measured_rounding(lambda p, q, f=change: np.array([f(p) - f(q)]), START, MOVE)
        assert found == ROUNDING
