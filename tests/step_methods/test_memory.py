"""What a step method holds goes with it: the model, its data, the rows."""

import gc
import weakref

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH
from tests.running import sample


def built_and_sampled(**settings):
    """References to what is built for a model, which is forgotten."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2_000, 3))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        pm.Normal("y", x @ beta, 1.0, observed=rng.normal(size=2_000))
        step = AusterityMH(**settings)
    sample(step, model, draws=5, tune=5, chains=1)
    return [weakref.ref(each) for each in (model, x, step, step.target, step.target.source)]


@pytest.mark.few("settings1")
@pytest.mark.parametrize("settings", [{}, {"control_variates": None}])
def test_nothing_stays(settings):
    references = built_and_sampled(**settings)
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)
