"""Levels of a factor that are nested in those of another move against them."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import GroupedMH
from tests.running import built, sample

N_SCHOOLS, N_CLASSES, N = 30, 90, 3_000
RNG = np.random.default_rng(4)
SCHOOL_OF = np.r_[np.arange(N_SCHOOLS), RNG.integers(N_SCHOOLS, size=N_CLASSES - N_SCHOOLS)]
CLASS = RNG.permutation(np.arange(N) % N_CLASSES)
SCHOOL, CROSSED = SCHOOL_OF[CLASS], RNG.integers(N_SCHOOLS, size=N)
X = RNG.normal(size=N)
Y = (
    RNG.normal(size=N_CLASSES)[CLASS]
    + RNG.normal(size=N_SCHOOLS)[SCHOOL]
    + 0.1 * RNG.normal(size=N)
)


def model(*, other=SCHOOL, prior=pm.Normal, slope=1.0):
    with pm.Model() as model:
        school = prior("school", mu=0.0, **_width(prior), shape=N_SCHOOLS)
        classes = pm.Normal("class", 0.3, 0.8, shape=N_CLASSES)
        pm.Normal("y", slope * school[other] + classes[CLASS], 0.1, observed=Y)
    return model


def _width(prior):
    return {"sigma": 0.9} if prior is pm.Normal else {"nu": 4.0, "sigma": 0.9}


def sweep_of(its):
    return built(its, GroupedMH).target.sweep


def test_are_found():
    (nested,) = sweep_of(model()).nested
    np.testing.assert_array_equal(nested.within, SCHOOL_OF)


@pytest.mark.parametrize("settings", [{"other": CROSSED}, {"prior": pm.StudentT}, {"slope": X}])
def test_only_where_no_row_notices_and_priors_are_normal(settings):
    assert sweep_of(model(**settings)).nested == ()


def test_rises_have_the_distribution_of_the_priors():
    """Sums stay, and each rise is normal, with the derivatives of the row-free part."""
    sweep, rng = sweep_of(model()), np.random.default_rng(2)
    (nested,), its = sweep.nested, sweep.posterior
    start = its.anchor + 0.1 * rng.normal(size=its.anchor.size)
    above = its.factors[nested.outer].entries[:, 0]
    below = its.factors[nested.inner].entries[:, 0]
    drawn = np.array([nested.drawn(its.factors, start, rng) for _ in range(4_000)])
    sums = drawn[:, above][:, SCHOOL_OF] + drawn[:, below]
    np.testing.assert_allclose(sums, np.tile(start[above][SCHOOL_OF] + start[below], (4_000, 1)))
    rises = drawn[:, above] - start[above]
    for school in range(N_SCHOOLS):
        step = np.zeros(start.size)
        step[above[school]], step[below[school == SCHOOL_OF]] = 1.0, -1.0
        up, down = (float(its.row_free_part(start + t * step, start)) for t in (1.0, -1.0))
        slope, precision = 0.5 * (up - down), -(up + down)
        assert abs(rises[:, school].mean() - slope / precision) < 5.0 / np.sqrt(precision * 4_000)
        assert abs(rises[:, school].var() * precision - 1.0) < 5.0 * np.sqrt(2.0 / 4_000)


def test_draws_have_the_moments_of_the_posterior():
    its = model()
    idata = sample(built(its, GroupedMH), its, draws=1_000, tune=300, chains=2)
    design = np.zeros((N, N_SCHOOLS + N_CLASSES))
    design[np.arange(N), SCHOOL] = design[np.arange(N), N_SCHOOLS + CLASS] = 1.0
    widths = np.repeat([0.9, 0.8], [N_SCHOOLS, N_CLASSES])
    covariance = np.linalg.inv(np.diag(widths**-2) + 100.0 * design.T @ design)
    of_prior = np.repeat([0.0, 0.3 / 0.8**2], [N_SCHOOLS, N_CLASSES])
    mean, sd = covariance @ (of_prior + 100.0 * design.T @ Y), np.sqrt(np.diag(covariance))
    n_effective = np.concatenate([az.ess(idata)[name].values for name in ("school", "class")])
    assert n_effective.min() > 400.0
    found = np.concatenate(
        [idata.posterior[name].values.reshape(2_000, -1) for name in ("school", "class")], axis=1
    )
    assert np.all(abs(found.mean(axis=0) - mean) < 5.0 * sd / np.sqrt(n_effective))
    assert np.all(abs(found.std(axis=0) / sd - 1.0) < 5.0 / np.sqrt(n_effective))
