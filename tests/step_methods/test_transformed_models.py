"""Models that PyMC rewrote, or that use `pymc.dims`, are sampled as the plain ones."""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
from pymc.model.transform.optimization import freeze_dims_and_data

from pymc_austerity import GroupedMH

N_ROWS, N_GROUPS = 5_000, 40
COORDS = {"row": range(N_ROWS), "group": range(N_GROUPS)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    group, x = rng.integers(0, N_GROUPS, N_ROWS), rng.normal(size=N_ROWS)
    y = rng.normal(rng.normal(size=N_GROUPS)[group] + 0.5 * x, 1.0)
    return {"group": group, "x": x, "y": y}


def plain(data) -> pm.Model:
    with pm.Model(coords=COORDS) as model:
        given = {name: pm.Data(f"{name}_data", data[name], dims="row") for name in data}
        mean, sd = pm.Normal("mean"), pm.HalfNormal("sd")
        effect = pm.Normal("effect", mean, sd, dims="group")
        mu = effect[given["group"]] + pm.Normal("slope") * given["x"]
        pm.Normal("y", mu, 1.0, observed=given["y"])
    return model


def with_dims(data) -> pm.Model:
    with pm.Model(coords=COORDS) as model:
        given = {name: pmd.Data(f"{name}_data", data[name], dims="row") for name in data}
        mean, sd = pmd.Normal("mean"), pmd.HalfNormal("sd")
        effect = pmd.Normal("effect", mean, sd, dims="group")
        mu = effect.isel(group=given["group"]) + pmd.Normal("slope") * given["x"]
        pmd.Normal("y", mu, 1.0, observed=given["y"])
    return model


MODELS = {"frozen": lambda data: freeze_dims_and_data(plain(data)), "dims": with_dims}


def draws(model):
    with model:
        settings = {"tune": 200, "chains": 1, "random_seed": 1, "progressbar": False}
        step = GroupedMH(rng=1)
        found = pm.sample(2_000, step=step, compute_convergence_checks=False, **settings)
    return {name: found.posterior[name].values[0] for name in ("effect", "sd", "slope")}


@pytest.fixture(scope="module")
def expected(data):
    return draws(plain(data))


@pytest.mark.parametrize("kind", ["frozen", "dims"])
def test_the_posterior_is_that_of_the_plain_model(data, expected, kind):
    found = draws(MODELS[kind](data))
    for name, values in expected.items():
        sd = values.std(axis=0)
        # 2,000 draws are worth 400 or more: five standard errors of a difference
        assert np.all(np.abs(found[name].mean(axis=0) - values.mean(axis=0)) < 0.35 * sd)
        np.testing.assert_allclose(found[name].std(axis=0), sd, rtol=0.25)
