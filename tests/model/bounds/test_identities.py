"""Each identity leaves the values as they are and takes away what has no bound."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special

from pymc_austerity._pymc import finite_in_tails, toposort
from pymc_austerity.model.bounds.identities import simplified

X = pt.dmatrix("x")
POWERS = pt.exp(X)
LARGEST = X.max(axis=1, keepdims=True)
SHIFTED = pt.exp(X - LARGEST)

REWRITTEN = {
    "softmax with a shift": (pt.special.softmax(X - LARGEST, axis=1), "ScalarMaximum"),
    "log of softmax with a shift": (pt.special.log_softmax(X - LARGEST, axis=1), "ScalarMaximum"),
    "softmax by hand": (POWERS / POWERS.sum(axis=1, keepdims=True), "TrueDiv"),
    "softmax by hand, with a shift": (SHIFTED / SHIFTED.sum(axis=1)[:, None], "ScalarMaximum"),
    "softmax by hand, with more axes": (
        SHIFTED[:, None, :] / SHIFTED.sum(axis=1)[:, None, None],
        "TrueDiv",
    ),
    "shares": (pt.special.softmax(X, axis=1).sum(axis=1) + X[:, 0], "unknown"),
    "difference of sigmoids": (pt.sigmoid(X[:, 2]) - pt.sigmoid(X[:, 0]), "Sub of Sigmoid"),
    "exponential tail": (pt.gammaincc(1.0, pt.exp(X)), "GammaIncC"),
    "power": (pt.log(pt.betainc(pt.exp(X), 1.0 + pt.floor(pt.zeros(3)), pt.sigmoid(X))), "BetaInc"),
}
LEFT = {
    "softmax less something else": pt.special.softmax(X - X[:, 0][:, None], axis=1),
    "shares of other rows": POWERS / POWERS.sum(axis=0)[None, :],
    "part of the shares": pt.special.softmax(X, axis=1)[:, 1:].sum(axis=1),
    "shares over another axis": pt.special.softmax(X, axis=1).sum(axis=0),
    "gamma tail of another shape": pt.gammaincc(2.0, pt.exp(X)),
    "gamma tail of any sign": pt.gammaincc(1.0, X),
    "beta distribution function": pt.log(pt.betainc(pt.exp(X), 2.0, pt.sigmoid(X))),
    "whole number of a fraction": pt.floor(pt.full_like(X, 1.5)),
}


def kinds(graph):
    return [type(getattr(n.op, "scalar_op", n.op)).__name__ for n in toposort([graph])]


def values(graph):
    x = np.sort(np.random.default_rng(0).normal(size=(6, 3)), axis=1)
    return pytensor.function([X], graph, mode="FAST_COMPILE")(x)


@pytest.mark.parametrize("name", REWRITTEN)
def test_values_stay(name):
    graph, gone = REWRITTEN[name]
    (found,) = simplified([finite_in_tails(graph)])
    assert found is not graph
    assert gone not in kinds(found)
    np.testing.assert_allclose(values(found), values(graph), rtol=1e-9)


@pytest.mark.parametrize("name", LEFT)
def test_others_are_left_alone(name):
    (found,) = simplified([finite_in_tails(LEFT[name])])
    np.testing.assert_allclose(values(found), values(LEFT[name]), rtol=1e-9)


def test_log_of_a_shifted_sum_of_exponentials():
    for inner in (
        pt.exp(X - LARGEST),
        pt.switch(pt.isinf(LARGEST), pt.exp(LARGEST), pt.exp(X - LARGEST)),
    ):
        graph = X.max(axis=1) + pt.log(inner.sum(axis=1))
        (found,) = simplified([graph])
        np.testing.assert_allclose(values(found), np.log(values(pt.exp(X).sum(axis=1))))
        assert kinds(found).count("Switch") == 0


def test_differences_of_sigmoids_in_the_wrong_order_are_not_defined():
    (found,) = simplified([pt.sigmoid(X[:, 0]) - pt.sigmoid(X[:, 2])])
    with np.errstate(invalid="ignore"):
        assert np.isnan(values(found)).all()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_root_of_a_half_in_single_precision_is_made_exact(sign):
    rounded = np.float32(sign * np.sqrt(0.5))
    (found,) = simplified([pt.erf(X * rounded)])
    x = np.random.default_rng(0).normal(size=(6, 3))
    value = pytensor.function([X], found, mode="FAST_COMPILE")(x)
    np.testing.assert_allclose(value, special.erf(sign * x * np.sqrt(0.5)), rtol=1e-15)
    (other,) = simplified([pt.erf(X * np.float32(0.7))])
    assert pytensor.graph.basic.equal_computations([other], [pt.erf(X * np.float32(0.7))])
