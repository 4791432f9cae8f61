"""Levels with decisions of their own, in both forms that users write."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import GroupedMH, SettingError
from tests.running import assert_moments, built, sample
from tests.step_methods.quadrature import normal_means

N_GROUPS = 40


def data(rows_per_group, n_groups=N_GROUPS):
    rng = np.random.default_rng(5)
    effect = rng.normal(1.0, 0.3, n_groups)
    group = np.repeat(np.arange(n_groups), rng.integers(1, 2 * rows_per_group, size=n_groups))
    return group, effect[group] + rng.normal(size=group.size)


def model_of(form, group, y):
    n_groups = int(group.max()) + 1
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        if form == "centered":
            a = pm.Normal("a", mu, tau, shape=n_groups)
        else:
            a = pm.Deterministic("a", mu + tau * pm.Normal("z", shape=n_groups))
        pm.Normal("y", a[group], 1.0, observed=y)
    return model


@pytest.fixture(
    scope="module",
    params=[
        ("centered", 1, 40),
        ("centered", 1, 8),
        ("centered", 3, 40),
        ("not centered", 3, 40),
        ("not centered", 100, 40),
        ("not centered", 20, 8),
    ],
    ids=lambda case: "{}, {} rows, {} groups".format(*case),
)
def run(request):
    form, rows_per_group, n_groups = request.param
    group, y = data(rows_per_group, n_groups)
    model = model_of(form, group, y)
    step = built(model, GroupedMH)
    return group, y, step, sample(step, model, draws=2_000, tune=500)


@pytest.mark.few("centered, 3 rows, 40 groups-mu", "centered, 3 rows, 40 groups-tau")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mu", "tau"])
def test_means_and_scales_are_those_of_quadrature(name, run):
    group, y, _, idata = run
    mean, sd = normal_means(group, y)[name]
    assert_moments(idata.posterior[name], mean, sd, at_least=150, slack=0.05)


@pytest.mark.slow
@pytest.mark.few("centered, 3 rows, 40 groups", "not centered, 100 rows, 40 groups")
def test_output_has_the_variables_of_the_user(run):
    _, y, step, idata = run
    posterior = idata.posterior
    if "z" not in posterior:
        assert "Moved as products" not in step.explain()
        return
    assert "Moved as products with their scales (centered): z." in step.explain()
    what, cost = step.summary.splitlines()
    assert "every level has a decision of its own" in what and "levels of z" in what
    assert cost.startswith(f"Cost: less than one of {len(y):,} rows per sweep; ")
    expected = posterior["mu"] + posterior["tau"] * posterior["z"].rename(z_dim_0="a_dim_0")
    np.testing.assert_allclose(posterior["a"].values, expected.transpose(*posterior["a"].dims))


def test_a_discrete_variable_leaves_no_groups():
    """Levels times whether they are there: no scale that could be divided by."""
    group, y = data(3)
    with pm.Model() as model:
        is_there, a = pm.Bernoulli("is_there", 0.5, shape=N_GROUPS), pm.Normal("a", shape=N_GROUPS)
        pm.Normal("y", (a * is_there)[group], 1.0, observed=y)
    with pytest.raises(SettingError, match="some variables are discrete"):
        built(model, GroupedMH)


@pytest.mark.few("centered-1-8-True")
@pytest.mark.parametrize(
    ("form", "rows_per_group", "n_groups", "is_grouped"),
    [
        ("centered", 1, 8, True),
        ("not centered", 3, 8, True),
        ("not centered", 3, N_GROUPS, True),
        ("centered", 3, 8, False),
        ("centered", 3, N_GROUPS, False),
    ],
)
def test_is_what_groups_of_few_rows_and_non_centered_ones_get(
    form, rows_per_group, n_groups, is_grouped
):
    step = built(model_of(form, *data(rows_per_group, n_groups)))
    assert isinstance(step, GroupedMH) is is_grouped
