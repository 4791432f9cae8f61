"""Data and starting points at which the log-density is not finite."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity.errors import DataError
from pymc_austerity.model import split_log_density, verify

N_ROWS = 300


def refuse(model: pm.Model, rng: np.random.Generator, max_rows: int) -> str:
    point = model.initial_point()
    with pytest.raises(DataError) as refusal:
        verify(split_log_density(model, point=point), point, rng=rng, max_rows=max_rows)
    return str(refusal.value)


@pytest.mark.parametrize("max_rows", [N_ROWS, 20])
class TestIsRefused:
    def test_missing_data(self, rng, max_rows):
        x = rng.normal(size=N_ROWS)
        x[[40, 250]] = np.nan
        with pm.Model() as model:
            slope = pm.Normal("slope")
            pm.Normal("y", slope * pt.as_tensor(x, name="x"), 1.0, observed=rng.normal(size=N_ROWS))
        message = refuse(model, rng, max_rows)
        assert "'y'" in message and "'x' holds NaN" in message and "in 2 of" in message

    def test_an_observation_outside_of_the_support(self, rng, max_rows):
        y = rng.gamma(2.0, size=N_ROWS)
        y[123] = -1.0
        with pm.Model() as model:
            pm.Gamma("y", pm.Exponential("a", 1), 1.0, observed=y)
        message = refuse(model, rng, max_rows)
        assert "'y'" in message and "support" in message and "row 123" in message


def test_an_impossible_term_beside_the_rows_is_named(rng):
    with pm.Model() as model:
        rate = pm.HalfNormal("rate")
        pm.Poisson("y", rate, observed=np.arange(9))
        pm.Exponential("total", rate, observed=-1.0)
    assert "'total'" in refuse(model, rng, N_ROWS)


def test_infinite_bounds_are_no_mistake(rng):
    y = rng.normal(size=N_ROWS)
    upper = np.where(y > 0, np.inf, 3.0)
    with pm.Model() as model:
        pm.Censored("y", pm.Normal.dist(pm.Normal("mu"), 1.0), None, upper, observed=y)
    point = model.initial_point()
    verify(split_log_density(model, point=point), point, rng=rng)
