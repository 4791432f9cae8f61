"""Distances of earlier decisions, read from a run and used for a design."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from pymc_austerity import AusterityMH, RandomWalkProposal, SettingError
from pymc_austerity.design import average_design
from pymc_austerity.diagnostics import trial_run
from tests.running import QUIET
from tests.step_methods.models import normal_mean


def sampled(n_rows, **settings):
    with normal_mean(n_rows=n_rows):
        step = AusterityMH(control_variates=None, proposal=RandomWalkProposal(), **settings)
        return pm.sample(step=step, draws=400, tune=300, chains=2, cores=1, random_seed=1, **QUIET)


@pytest.mark.exhaustive
def test_distances_of_an_exact_run_are_kept_and_make_a_design():
    idata = sampled(10_000, epsilon=0.0)
    trial = trial_run(idata)
    recorded = idata["sample_stats"]["standardized_mean"].values
    np.testing.assert_allclose(trial.mu_std, recorded[np.isfinite(recorded)])
    assert trial.n_rows == 10_000
    design = average_design(trial, 0.02, measure="decision")
    assert 0.0 < design.epsilon < 0.5
    assert design.expected_error <= 0.02


def fake(exact=True, **attrs):
    values = {"n_rows_used": 10, "standardized_mean": 1.0, "used_all_rows": exact, "n_looks": 1}
    dims = ("chain", "draw")
    return xr.Dataset({k: (dims, np.full((1, 5), v)) for k, v in values.items()}, attrs=attrs)


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (fake(n_rows=100, steps_per_draw=5), "steps_per_draw=1"),
        (fake(n_rows=100, stratum_sizes=[50, 50]), "sampling='windows'"),
        (fake(n_rows=100).assign(standardized_mean=fake().n_looks * np.nan), "nothing to design"),
        (fake(exact=False, n_rows=100), "epsilon=0"),
        (fake(), "lacks 'n_rows'"),
    ],
)
def test_runs_that_tell_nothing(run, word):
    with pytest.raises(SettingError, match=word):
        trial_run(run)
