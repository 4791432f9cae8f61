"""Every shape of the zoo as a function of its linear predictors, and what these consist of."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_austerity._pymc import AllocEmpty, toposort
from pymc_austerity.model import find_predictors
from pymc_austerity.step_methods.summary import explain
from tests.model.predictors.brute_force import Structured, of_shape
from tests.model.splitting import at_start
from tests.step_methods.models import normal_mean
from tests.zoo.all_shapes import SHAPES
from tests.zoo.registry import ordered, written


def cases():
    for shape in SHAPES.values():
        if shape.expect != "refused":
            for precision in ("float64", "float32"):
                yield pytest.param(shape, precision, id=f"{shape.name}-{precision}")


def structured(write, rng):
    return Structured(written(write), rng)


def check_rows(found, n, tolerance=1e-10):
    """Rows as functions of the predictors are the rows."""
    point, block = found.point(), found.block(n)
    rows = found.of_etas(found.etas(found.raveled(point), block), block)
    np.testing.assert_allclose(rows, found.rows(point, block), rtol=tolerance, atol=tolerance)


@pytest.mark.few(
    "logistic-float64",
    "linear_with_data-float64",
    "linear_flattened-float64",
    "student_t-float64",
    "slopes_by_group-float64",
    "hurdle-float64",
    "item_response-float64",
    "sparse_beside_groups-float64",
    "sparse_row-float64",
    "censored-float64",
    "categorical_logits-float64",
    "zero_inflated-float64",
    "negative_binomial-float64",
    "intercepts_and_slopes-float64",
    "rows_on_the_second_axis-float64",
    "two_likelihoods-float64",
    "interpolation-float64",
    "random_effects_by_row-float64",
    "labelled-float64",
    "lag_of_an_effect-float64",
    "zero_sum_effects-float64",
    "missing_observations-float64",
    "einsum-float64",
    "neural_network-float64",
    "logistic-float32",
    "slopes_by_group-float32",
)
@pytest.mark.parametrize(("shape", "precision"), list(cases()))
@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_rows_are_the_function_of_the_predictors(shape, precision, rng):
    with pytensor.config.change_flags(floatX=precision):
        check_structure(shape, precision, rng)


def check_structure(shape, precision, rng):
    found = of_shape(shape.name, rng)
    structure = found.structure
    assert not isinstance(structure, str), structure
    assert len(structure.predictors) == len(structure.etas) == shape.predictors
    for term in (term for predictor in structure.predictors for term in predictor.terms):
        if term.is_matrix and not term.is_sparse:
            assert np.unique(term.entries).size == term.entries.size
    assert found.near().size == structure.size
    for n in (1, 4, 9):
        check_rows(found, n, 1e-9 if precision == "float64" else 2e-3)


def test_a_regression_reads_its_design_matrix_as_it_is(rng):
    X = rng.standard_normal((40, 3))

    def write():
        sigma, beta = pm.HalfNormal("sigma"), pm.Normal("beta", shape=3)
        pm.Normal("y", 2.0 + X @ beta, sigma, observed=X[:, 0])

    found = structured(write, rng)
    by_name = {p.name: p for p in found.structure.predictors}
    (scale,) = by_name["sigma_log__"].terms
    assert scale.is_plain and scale.entries.tolist() == [0]
    (dense,) = next(p for name, p in by_name.items() if "beta" in name).terms
    assert dense.is_matrix and dense.data in found.placeholders and dense.scale == 1.0
    assert dense.entries.tolist() == [1, 2, 3]


def test_group_effects_are_gathered_also_below_a_function_of_them(rng):
    group = rng.integers(0, 5, 40)

    def write():
        log_sigma = pm.Normal("log_sigma", shape=5)
        mu, tau, z = pm.Normal("mu"), pm.HalfNormal("tau"), pm.Normal("z", shape=5)
        effect = mu + tau * z
        pm.Normal("y", effect[group], pt.exp(log_sigma)[group], observed=group.astype(float))

    found = structured(write, rng)
    terms = [p.terms for p in found.structure.predictors]
    assert sorted(p.name for p in found.structure.predictors) == [
        "log_sigma[data]", "mu", "tau_log__", "z[data]",
    ]  # fmt: skip
    assert all(len(t) == 1 for t in terms)
    assert sum(t[0].is_choice for t in terms) == 2
    check_rows(found, 7)


def test_many_groups_need_no_dense_map(rng):
    n_groups = 100_000
    group = rng.permutation(n_groups)

    def write():
        a = pm.Normal("a", shape=n_groups)
        centered = pt.concatenate([[0.0], 2.0 * a[1:] - 1.0]).reshape((n_groups // 10, 10))
        pm.Bernoulli("y", logit_p=centered.ravel()[group], observed=group % 2)

    found = structured(write, rng)
    (predictor,) = found.structure.predictors
    (term,) = predictor.terms
    assert term.is_choice and term.entries.size == n_groups
    check_rows(found, 7)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_cumulative_sums_are_linear(axis, rng):
    X = rng.standard_normal((40, 8 if axis is None else 5))

    def write():
        steps = pm.Normal("steps", shape=(4, 2))
        walk = pt.cumsum(steps, axis=axis)
        walk = walk if axis is None else walk[:, 1]
        weights = pt.concatenate([[0.5], walk])[: X.shape[1]]
        pm.Normal("y", X @ weights, 1.0, observed=X[:, 0])

    found = structured(write, rng)
    assert len(found.structure.predictors) == 1
    check_rows(found, 7)


def test_an_array_that_is_filled_by_entries_is_made_once_for_all_rows(rng):
    x = rng.standard_normal(40)

    def write():
        cuts, observed = ordered("cuts", [-1.0, 1.0]), rng.integers(0, 3, 40)
        pm.OrderedLogistic("y", pm.Normal("b") * x, cuts, observed=observed)

    found = structured(write, rng)
    nodes = toposort([found.structure.function])
    assert any(isinstance(node.op, AllocEmpty) for node in nodes)
    check_rows(found, 7)


def test_constants_in_the_shape_of_parameters_are_no_predictors(rng):
    group = np.arange(20) % 4

    def write():
        a = pm.Normal("a", shape=4)
        eta = a[group] + pm.math.log(2.0) * pt.ones_like(a)[group]
        eta += np.ones((20, 4)) @ (a * np.zeros(4))
        pm.Poisson("y", pm.math.exp(eta), observed=rng.poisson(1.0, size=20))

    assert len(structured(write, rng).structure.predictors) == 1


def test_slices_beside_indices_are_whole_rows(rng):
    group = np.arange(20) % 4

    def write():
        root, z = pm.Normal("root", shape=(2, 2)), pm.Normal("z", shape=(2, 4))
        effects = pt.dot(root, z).T  # an index into a transposed product of parameters
        eta = (effects[group] * rng.normal(size=(20, 2))).sum(axis=1)
        pm.Normal("y", eta, 1.0, observed=rng.normal(size=20))

    # two entries of a level, four of the matrix
    assert len(structured(write, rng).structure.predictors) == 6


def test_negative_indices_count_from_the_end(rng):
    group = rng.integers(-4, 4, 40)

    def write():
        a = pm.Normal("a", shape=4)
        pm.Normal("y", a[group], 1.0, observed=np.zeros(40))

    check_rows(structured(write, rng), 20)


def test_rows_pick_from_what_a_mask_leaves_of_transformed_levels(rng):
    kept = np.arange(12) % 4 != 1
    group = rng.integers(-9, 9, 40)

    def write():
        rate = pt.exp(pm.Normal("a", shape=12))
        pm.Poisson("y", rate[kept][group] + rate[pm.Data("kept", kept)][group], observed=group + 9)

    found = structured(write, rng)
    assert {p.name for p in found.structure.predictors} == {"a[data]"}
    check_rows(found, 20)


def test_multiples_and_offsets_of_one_predictor_are_one(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)

    def write():
        eta = X @ pm.Normal("b", shape=3)
        pm.Normal("y1", eta, 1.0, observed=y)
        pm.Normal("y2", 1.0 - 2.0 * eta, 1.0, observed=y)
        pm.Poisson("y3", pt.exp(eta + y), observed=np.arange(40))

    found = structured(write, rng)
    assert [p.name for p in found.structure.predictors] == ["data @ b"]


def test_a_row_that_fails_a_check_does_not_fail_the_others(rng):
    x = np.linspace(0.5, 1.5, 40)

    def write():
        b = pm.Normal("b", initval=1.0)
        pm.Normal("y", 0.0, b + x, observed=np.zeros(40))

    found = structured(write, rng)
    at = np.array([-1.0])
    rows = found.of_etas(found.etas(at, [x]), [x])
    expected = np.where(x > 1.0, -np.log(np.abs(x - 1.0)) - 0.5 * np.log(2 * np.pi), -np.inf)
    np.testing.assert_allclose(rows, expected, rtol=1e-10)


def test_too_many_predictors_are_a_reason(rng):
    X = rng.standard_normal((40, 3))

    def write():
        W = pm.Normal("W", shape=(3, 70))
        pm.Bernoulli("y", logit_p=pt.tanh(X @ W).sum(axis=1), observed=np.zeros(40))

    reason = structured(write, rng).structure
    assert reason == "it is a function of 70 linear predictors, more than 64"


def test_what_describes_groups_is_a_term_beside_their_levels(rng):
    group, about = rng.integers(0, 7, size=50), rng.normal(size=(7, 3))

    def write():
        effects = about @ pm.Normal("g", shape=3) + pm.Normal("z", shape=7) + pm.Normal("m")
        pm.Normal("y", effects[group], 1.0, observed=np.zeros(50))

    found = structured(write, rng)
    (predictor,) = found.structure.predictors
    assert sorted(term.entries.size for term in predictor.terms) == [1, 3, 7]
    check_rows(found, 20)


@pytest.mark.parametrize("function", [pt.sort, pt.cumsum])
def test_rows_that_read_an_empty_array_are_a_reason(function, rng):
    def write():
        slopes = pm.Normal("slopes", shape=3)
        nothing = pt.exp(function(slopes[3:])).sum()
        pm.Normal("y", pt.tanh(np.eye(3)[0] * slopes[0] + nothing), 1.0, observed=np.zeros(3))

    assert structured(write, rng).structure == "its rows read an empty array"


def test_other_step_methods_are_a_reason():
    at = at_start(normal_mean(10))
    shared = {at.variables[0]: pytensor.shared(0.0)}
    assert "other step methods" in find_predictors(at._replace(variables=[], shared=shared))


def test_they_are_named_in_the_explanation(rng):
    found = of_shape("negative_binomial", rng)
    text = explain(found.split, structure=found.structure)
    assert "Linear predictors of the rows: a_log__, data @ beta." in text.splitlines()
    assert "none, because there are too many." in explain(
        found.split, structure="there are too many"
    )
