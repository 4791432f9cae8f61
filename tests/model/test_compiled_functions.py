"""Compiled differences are differences of the model's own log-density."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity._pymc import make_shared_replacements
from pymc_austerity.model import (
    ModelAt,
    compile_row_differences,
    compile_row_free_difference,
    split_log_density,
)
from tests.model.splitting import by_name
from tests.zoo.all_shapes import SHAPES

N_ROWS = 53


def compiled(model: pm.Model, names: list[str] | None = None, **settings):
    point = model.initial_point()
    split = split_log_density(model, point=point)
    values = [model.rvs_to_values[model[n]] for n in names] if names else list(model.value_vars)
    shared = make_shared_replacements(point, values, model)
    arguments = ModelAt(split, values, shared, point)
    rows = compile_row_differences(arguments, **settings)
    return split, values, rows, compile_row_free_difference(arguments, **settings)


def log_density_of(model: pm.Model, variables: list):
    """The model's own log-density as a function of a raveled vector of all value variables."""
    function, point = model.compile_logp(mode="FAST_COMPILE"), model.initial_point()

    def evaluate(vector):
        parts = point | by_name(vector, variables, point)
        return function({k: v.astype(point[k].dtype) for k, v in parts.items()})

    return evaluate


@pytest.mark.parametrize(
    "name", ["linear_with_data", "item_response", "switchpoint", "poisson_exposure", "labelled"]
)
@pytest.mark.few("linear_with_data")
def test_rows_and_exact_part_add_up_to_the_models_difference(name, rng):
    model = SHAPES[name].build(N_ROWS)
    split, values, row_differences, row_free_difference = compiled(model)
    parts = [np.ravel(model.initial_point()[v.name]) for v in values]
    start = np.concatenate(parts)
    moves = np.concatenate(
        [
            np.full(part.size, 3.0) if part.dtype.kind == "i" else 0.1 * rng.normal(size=part.size)
            for part in parts
        ]
    )
    current, proposed = start.astype(float), (start + moves).astype(float)
    rows = row_differences(proposed, current, *[leaf.array for leaf in split.leaves])
    exact = row_free_difference(proposed, current)
    assert rows.dtype == exact.dtype == np.float64
    assert rows.shape == (split.n_rows,) and exact.shape == ()
    log_density = log_density_of(model, values)
    expected = log_density(proposed) - log_density(current)
    assert rows.sum() + float(exact) == pytest.approx(float(expected), rel=1e-8, abs=1e-8)
    chosen = np.array([5, 5, 0])
    some = row_differences(proposed, current, *[leaf.array[chosen] for leaf in split.leaves])
    np.testing.assert_allclose(some, rows[chosen], rtol=1e-10)


FAST = {"compile_kwargs": {"mode": "FAST_COMPILE"}}


def test_other_variables_are_read_from_shared_ones():
    model = SHAPES["linear"].build(N_ROWS)
    point = model.initial_point()
    split = split_log_density(model, point=point)
    beta, s = model.value_vars
    shared = make_shared_replacements(point, [beta], model)
    row_differences = compile_row_differences(ModelAt(split, [beta], shared, point), **FAST)
    leaves = [leaf.array for leaf in split.leaves]
    narrow = row_differences(np.ones(3), np.zeros(3), *leaves)
    shared[s].set_value(point[s.name] + np.log(2.0))
    wide = row_differences(np.ones(3), np.zeros(3), *leaves)
    np.testing.assert_allclose(narrow, 4.0 * wide)


class TestFailedChecks:
    def model(self, **settings) -> pm.Model:
        with pm.Model(**settings) as model:
            sigma = pm.Normal("sigma", initval=1.0)
            pm.Normal("y", 0.0, sigma + np.linspace(0.0, 0.1, N_ROWS), observed=np.ones(N_ROWS))
        return model

    def test_give_minus_infinity(self):
        split, _, row_differences, _ = compiled(self.model(), **FAST)
        leaves = [leaf.array[:5] for leaf in split.leaves]
        assert (row_differences(np.array([-1.0]), np.array([1.0]), *leaves) == -np.inf).all()

    def test_concern_the_rows_at_hand(self):
        split, _, row_differences, _ = compiled(self.model(), **FAST)
        leaves = [leaf.array[-5:] for leaf in split.leaves]
        assert np.isfinite(row_differences(np.array([-0.05]), np.array([1.0]), *leaves)).all()

    def test_are_left_out_where_the_model_says_so(self):
        split, _, row_differences, _ = compiled(self.model(check_bounds=False), **FAST)
        leaves = [leaf.array[:5] for leaf in split.leaves]
        assert not (row_differences(np.array([-1.0]), np.array([1.0]), *leaves) == -np.inf).any()
