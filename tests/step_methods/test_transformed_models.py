"""Models that PyMC rewrote, or that use `pymc.dims`, are sampled as the plain ones."""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
from pymc.model.transform import optimization

from pymc_austerity import AusterityMH, GroupedMH, SettingTypeError
from tests.running import assert_alike, built, sample

N_ROWS, N_GROUPS = 5_000, 40
COORDS = {"row": range(N_ROWS), "group": range(N_GROUPS)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    group, x = rng.integers(0, N_GROUPS, N_ROWS), rng.normal(size=N_ROWS)
    y = rng.normal(rng.normal(size=N_GROUPS)[group] + 0.5 * x, 1.0)
    return {"group": group, "x": x, "y": y}


def plain(data, lib=pm) -> pm.Model:
    with pm.Model(coords=COORDS) as model:
        given = {name: lib.Data(f"{name}_data", data[name], dims="row") for name in data}
        mean, sd = lib.Normal("mean"), lib.HalfNormal("sd")
        effect = lib.Normal("effect", mean, sd, dims="group")
        own = effect[given["group"]] if lib is pm else effect.isel(group=given["group"])
        lib.Normal("y", own + lib.Normal("slope") * given["x"], 1.0, observed=given["y"])
    return model


MODELS = {
    "freeze_dims_and_data": lambda data: optimization.freeze_dims_and_data(plain(data)),
    "dims": lambda data: plain(data, pmd),
}
if hasattr(optimization, "freeze_model"):  # PyMC 6
    MODELS["freeze_model"] = lambda data: optimization.freeze_model(plain(data))


def draws(model):
    step = built(model, GroupedMH, rng=1)
    return sample(step, model, draws=2_000, tune=200, chains=1, random_seed=1)


@pytest.fixture(scope="module")
def expected(data):
    return draws(plain(data))


@pytest.mark.parametrize("kind", MODELS)
def test_the_posterior_is_that_of_the_plain_model(data, expected, kind):
    # 2,000 draws are worth 400 or more: five standard errors of a difference
    assert_alike(draws(MODELS[kind](data)), expected, ("effect", "sd", "slope"), 0.35, 0.22)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_in_the_place_of_its_variables(data, kind):
    model, written = plain(data), MODELS[kind](data)
    with pytest.raises(SettingTypeError, match="give it as model="), model:
        AusterityMH(written)
