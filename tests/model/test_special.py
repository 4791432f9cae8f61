import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import grad
from scipy.special import polygamma

from pymc_austerity.model.compiling import expand_trigamma, trigamma_series

X = np.concatenate([np.geomspace(1e-8, 1e8, 200), [0.5, 1.0, 2.0, 9.99, 10.0]])


def test_trigamma_agrees_with_scipy():
    np.testing.assert_allclose(trigamma_series(pt.constant(X)).eval(), polygamma(1, X), rtol=1e-12)


@pytest.mark.parametrize("x", [0.0, -0.5, -3.0])
def test_trigamma_is_for_positive_numbers(x):
    assert np.isnan(trigamma_series(pt.constant(x, dtype="float64")).eval())


def test_second_derivatives_of_the_log_gamma_function_are_expanded():
    x = pt.dvector("x")
    first = grad(pt.gammaln(x).sum(), x)
    second = grad(first.sum(), x)
    assert "tri_gamma" in pytensor.dprint(second, file="str").lower()
    (expanded,) = expand_trigamma([second])
    assert "tri_gamma" not in pytensor.dprint(expanded, file="str").lower()
    np.testing.assert_allclose(expanded.eval({x: X}), polygamma(1, X), rtol=1e-12)


def test_other_graphs_are_left_alone():
    x = pt.dvector("x")
    y = pt.exp(x)
    assert expand_trigamma([y]) == [y]
