"""Known numbers of groups are read from an array, not found by hundreds of comparisons."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model import find_predictors
from pymc_austerity.model.kernel.kernel import kernel_of
from tests.model.kernel.structures import run_by_python
from tests.model.splitting import at_start

N_GROUPS, N_ROWS = 300, 2_000


@pytest.fixture
def covariate_of_groups(rng):
    covariate, group = rng.normal(size=N_GROUPS), rng.integers(-N_GROUPS, N_GROUPS, N_ROWS)
    with pm.Model() as model:
        a, slope = pm.Normal("a", shape=N_GROUPS), pm.Normal("slope")
        pm.Normal(
            "y", (a + slope * covariate + covariate**2)[group], observed=rng.normal(size=N_ROWS)
        )
    return covariate, group, find_predictors(at_start(model))


def test_one_array_in_place_of_comparisons(covariate_of_groups):
    source = kernel_of(covariate_of_groups[2], 0).source
    assert source.count("\ntable_") == 2
    assert source.count("one_of_two(") < 5


@pytest.mark.parametrize("run", ["compiled", "python"])
def test_the_numbers_are_those_of_the_group(run, covariate_of_groups, rng):
    covariate, group, structure = covariate_of_groups
    kernel = kernel_of(structure, 0)
    new, old = rng.normal(size=(2, N_GROUPS + 1))
    block = [leaf.array for leaf in structure.leaves]
    y = next(array for array in block if array.dtype == np.float64)

    def log_density(point):
        mean = point[:-1] + point[-1] * covariate + covariate**2
        return -0.5 * (y - mean[group]) ** 2

    if run == "python":
        kernel = by_python(kernel)
    found = kernel(new, old, *block)
    np.testing.assert_allclose(found, log_density(new) - log_density(old), rtol=1e-9, atol=1e-11)


def by_python(kernel):
    differences = run_by_python(kernel.source)

    def function(new, old, *block):
        out = np.empty(N_ROWS)
        differences(kernel.ordered(new), kernel.ordered(old), kernel.starts, out, *block)
        return out

    return function
