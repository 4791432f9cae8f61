"""Linear algebra of small matrices as formulas, against LAPACK."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_austerity._pymc import Cholesky, SolveTriangular, ancestors
from pymc_austerity.model.compiling import NUMPY_MODE
from pymc_austerity.model.cut import Known
from pymc_austerity.model.rewritten import inverse_of_lower, spelled_out

RNG = np.random.default_rng(2)


def is_spelled_out(graph):
    ops = [v.owner.op for v in ancestors([graph]) if v.owner is not None]
    cores = [getattr(op, "core_op", op) for op in ops]
    return not any(isinstance(op, Cholesky | SolveTriangular) for op in cores)


def both(inputs, graph, values):
    (formula,) = spelled_out([graph], Known(inputs, {v.name: x for v, x in values.items()}))
    assert is_spelled_out(formula)
    functions = (
        pytensor.function(inputs, g, mode=NUMPY_MODE, on_unused_input="ignore")
        for g in (graph, formula)
    )
    expected, found = (f(*values.values()) for f in functions)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def positive_definite(size):
    root = RNG.normal(size=(size, size))
    return root @ root.T + np.eye(size)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_factors(size, lower):
    a = pt.matrix("a")
    root = pt.linalg.cholesky(a, lower=lower)
    both([a], root, {a: positive_definite(size)})
    both([a], root @ a, {a: positive_definite(size)})


def test_cholesky_factor_of_a_product_is_the_triangular_matrix():
    a = pt.vector("a")
    triangle = pt.zeros((3, 3))[np.tril_indices(3)].set(a)
    (root,) = spelled_out(
        [pt.linalg.cholesky(triangle @ triangle.T)], Known([a], {"a": np.arange(1.0, 7.0)})
    )
    names = [str(v.owner.op) for v in ancestors([root]) if v.owner is not None]
    assert not any("Sqrt" in name for name in names)
    value = np.array([-1.0, 2.0, 3.0, 4.0, -5.0, 6.0])
    dense = np.zeros((3, 3))
    dense[np.tril_indices(3)] = value
    found = pytensor.function([a], root, mode=NUMPY_MODE)(value)
    np.testing.assert_allclose(found, np.linalg.cholesky(dense @ dense.T), atol=1e-12)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit_diagonal", [True, False])
@pytest.mark.parametrize("shape", [(3,), (3, 5)])
def test_triangular_systems(lower, unit_diagonal, shape):
    a, b = pt.matrix("a"), pt.tensor("b", shape=(None,) * len(shape))
    x = pt.linalg.solve_triangular(
        a, b, lower=lower, unit_diagonal=unit_diagonal, b_ndim=len(shape)
    )
    both([a, b], x, {a: positive_definite(3), b: RNG.normal(size=shape)})


def test_one_system_for_each_level():
    a, b = pt.matrix("a"), pt.matrix("b")
    x = pt.linalg.solve_triangular(a, b, lower=True, b_ndim=1)
    both([a, b], x, {a: positive_definite(2), b: RNG.normal(size=(7, 2))})


def test_large_matrices_stay_as_they_are():
    a = pt.matrix("a")
    root = pt.linalg.cholesky(a)
    (same,) = spelled_out([root], Known([a], {"a": np.eye(20)}))
    assert same is root


def test_multivariate_normal_prior():
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("c", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("a", pm.Normal("mu", shape=3), chol=chol, shape=(6, 3))
    start = model.initial_point()
    values = {
        v: start[v.name] + 0.3 * RNG.normal(size=start[v.name].shape) for v in model.value_vars
    }
    both(model.value_vars, model.logp(), values)


@pytest.mark.parametrize("size", [1, 3])
def test_inverse_of_a_triangular_matrix(size):
    matrix = np.tril(RNG.normal(size=(size, size))) + 2.0 * np.eye(size)
    found = inverse_of_lower(pt.as_tensor(matrix), size).eval(mode=NUMPY_MODE)
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=1e-12)
