"""Functions of PyTensor that several threads call at a time."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import log_expit, polygamma

import pymc_austerity.model.compiling as compiling
from pymc_austerity._pymc import Blockwise, ancestors, vectorize_graph
from pymc_austerity.model.compiling import (
    NUMPY_MODE,
    AnyThread,
    OneAtATime,
    interpreted,
    rounded_otherwise,
)

X = np.concatenate([[-1e300, -800.0, 0.0, 800.0, 1e300], np.linspace(-40.0, 40.0, 101)])


def run(graph, x, values):
    function = interpreted(pm.Model(), [x], [graph])
    assert function is not None
    return function(values)[0]


def test_softplus_has_no_overflow():
    x = pt.vector("x", dtype="float64")
    np.testing.assert_allclose(run(pt.softplus(x), x, X), -log_expit(-X), rtol=1e-14)


def test_log1mexp_keeps_its_digits_on_both_sides():
    x = pt.vector("x", dtype="float64")
    values = -np.geomspace(1e-12, 700.0, 60)
    big = np.array(
        [float(np.log1p(-np.exp(v))) if v < -1 else np.log(-np.expm1(v)) for v in values]
    )
    np.testing.assert_allclose(run(pt.log1mexp(x), x, values), big, rtol=1e-14)


def test_sums_and_products_of_many(rng):
    x = pt.vector("x", dtype="float64")
    values = rng.normal(size=50)
    graph = (x * pt.exp(x) * pt.sin(x)) + pt.cos(x) + x**2 + 1.0
    expected = values * np.exp(values) * np.sin(values) + np.cos(values) + values**2 + 1.0
    np.testing.assert_allclose(run(graph, x, values), expected, rtol=1e-13)


def test_derivatives_of_gamma_functions():
    x = pt.vector("x", dtype="float64")
    values = np.linspace(0.1, 30.0, 40)
    second = pt.grad(pt.grad(pt.gammaln(x).sum(), x).sum(), x)
    np.testing.assert_allclose(run(second, x, values), polygamma(1, values), rtol=1e-10)


def test_what_python_would_do_entry_by_entry_is_refused():
    x = pt.vector("x", dtype="float64")

    def step(entry, last):
        return pt.sin(last) + entry

    scan = pytensor.scan(step, sequences=[x], outputs_info=[np.float64(0.0)], return_updates=False)
    assert interpreted(pm.Model(), [x], [scan]) is None


@pytest.mark.parametrize("is_stable", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_checks_of_parameters_are_those_of_the_model(check, is_stable, monkeypatch):
    monkeypatch.setattr(compiling._SimplifiedLater, "__call__", lambda self, *a: self._function(*a))
    sigma = pt.scalar("sigma", dtype="float64")
    graph = pm.logp(pm.Normal.dist(0.0, sigma), 0.0)
    function = interpreted(pm.Model(check_bounds=check), [sigma], [graph], is_stable=is_stable)
    value = function(np.float64(-1.0))[0]
    assert np.isneginf(value) if check else np.isnan(value)


def test_overflow_is_no_warning():
    x = pt.vector("x", dtype="float64")
    function = interpreted(pm.Model(), [x], [(1.0 / x).sum()])
    (total,) = function(np.array([0.0, -0.0]))
    assert np.isnan(total)


def test_a_value_in_the_shape_of_another(rng):
    x = pt.matrix("x", shape=(None, 3), dtype="float64")
    values = rng.normal(size=(4, 3))
    filled = pt.second(x, x[:, :1])
    np.testing.assert_array_equal(run(filled, x, values), np.tile(values[:, :1], 3))


def test_batches_are_slow_unless_they_are_few(rng):
    x = pt.matrix("x", dtype="float64")
    v = pt.vector("v", dtype="float64")
    graph = vectorize_graph(pt.concatenate(pt.split(v, [1, 2], n_splits=2)[::-1]), {v: x})
    # PyTensor 3 joins batches as they are
    has_batches = any(isinstance(v.owner.op, Blockwise) for v in ancestors([graph]) if v.owner)
    assert (interpreted(pm.Model(), [x], [graph]) is None) is has_batches
    function = interpreted(pm.Model(), [x], [graph], few_batches=True)
    values = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(function(values)[0], np.roll(values, 2, axis=1))


def test_rounding_shows_where_a_formula_has_few_digits():
    x = pt.vector("x", dtype="float64")
    values = np.array([1.0, 31.0])
    spread = []
    for graph in (pt.log(1.0 - pt.sigmoid(x)), pt.log(1.0 - 0.5 * (1.0 + pt.tanh(x / 2.0)))):
        function = pytensor.function([x], graph, mode=NUMPY_MODE)
        others = [rounded_otherwise(function, np.random.default_rng(k))(values) for k in range(9)]
        spread.append(np.ptp(others, axis=0)[0])
    assert (spread[0] < 1e-13).all()  # PyTensor knows a stable form
    assert spread[1][0] < 1e-14 and spread[1][1] > 1e-4


def function():
    x = pt.vector("x", dtype="float64")
    return pm.compile([x], [pt.exp(pt.sin(x)) * x + pt.log1p(x**2)], mode=NUMPY_MODE)


@pytest.mark.parametrize("kind", [AnyThread, OneAtATime])
def test_threads_do_not_meet(kind):
    safe = pickle.loads(pickle.dumps(kind(function())))
    arrays = [np.random.default_rng(k).normal(size=20_000) for k in range(60)]
    expected = [np.exp(np.sin(x)) * x + np.log1p(x**2) for x in arrays]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(safe, arrays))
    for (one,), other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_an_error_costs_no_copy():
    safe = AnyThread(function())
    with pytest.raises((TypeError, ValueError)):
        safe("no vector")
    assert safe(np.zeros(2))[0].tolist() == [0.0, 0.0]
    assert len(safe._free) == 1


def test_a_stable_graph_is_simplified_when_it_is_not_finite_or_called_often():
    x, values = pt.vector("x", dtype="float64"), np.linspace(-30.0, 30.0, 999)
    functions = [
        interpreted(pm.Model(), [x], [pt.log(pt.exp(x))], is_stable=True) for _ in range(2)
    ]
    elsewhere = pickle.loads(pickle.dumps(functions[0]))
    assert not np.array_equal(functions[0](values)[0], values)  # rounded
    np.testing.assert_array_equal(functions[0](np.array([-800.0, 800.0]))[0], [-800.0, 800.0])
    assert np.isinf(elsewhere(np.array([-800.0, 800.0]))[0]).all()  # keeps what it has
    for _ in range(199):
        assert not np.array_equal(functions[1](values)[0], values)
    np.testing.assert_array_equal(functions[1](values)[0], values)


def test_a_rewrite_that_fails_leaves_a_stable_graph_as_it_is_written(monkeypatch):
    """One of PyTensor 2.38 asserts too much, where matrices are random walks."""
    compile_ = pm.compile

    def failing(*arguments, mode, **settings):
        assert mode is not NUMPY_MODE
        return compile_(*arguments, mode=mode, **settings)

    monkeypatch.setattr(pm, "compile", failing)
    x = pt.vector("x", dtype="float64")
    function = interpreted(pm.Model(), [x], [1.0 / x], is_stable=True)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(function(np.array([0.0, 2.0]))[0], [np.inf, 0.5])
    with pytest.raises(AssertionError):
        interpreted(pm.Model(), [x], [1.0 / x])
