"""Logarithms of differences of normal distribution functions, however they are written."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special

from pymc_austerity.model.bounds.identities import (
    NoLogarithmError,
    expand_logarithms,
    log_of_difference,
)
from tests.model.bounds.test_identities import kinds

X, Y = pt.dvectors("x", "y")
ROOT = np.sqrt(2.0)


def scaled(sign):
    """exp(u^2) (erfc(u) - erfc(v)) for ends that are both on one side."""
    u, v = (Y / ROOT, X / ROOT) if sign > 0 else (X / ROOT, Y / ROOT)
    u_squared, v_squared = pt.sqr(u), pt.sqr(v)
    u, v = (u, v) if sign > 0 else (-u, -v)
    return pt.erfcx(u) - pt.exp(u_squared - v_squared) * pt.erfcx(v)


DIFFERENCES = {
    "erf": (pt.erf(X / ROOT) - pt.erf(Y / ROOT), lambda x, y: np.log(2.0)),
    "erfc": (pt.erfc(Y / ROOT) - pt.erfc(X / ROOT), lambda x, y: np.log(2.0)),
    "erfc of the other side": (pt.erfc(-X / ROOT) - pt.erfc(-Y / ROOT), lambda x, y: np.log(2.0)),
    "distribution functions": (
        0.5 * (1.0 + pt.erf(X / ROOT)) - 0.5 * (1.0 + pt.erf(Y / ROOT)), lambda x, y: 0.0,
    ),
    "tails": ((1.0 - 0.5 * pt.erfc(X / ROOT)) - (1.0 - 0.5 * pt.erfc(Y / ROOT)), lambda x, y: 0.0),
    "above zero": (scaled(1), lambda x, y: np.log(2.0) + y**2 / 2.0),
    "below zero": (scaled(-1), lambda x, y: np.log(2.0) + x**2 / 2.0),
}  # fmt: skip
OTHERS = {
    "one function": pt.erf(X) - Y,
    "other factors": 2.0 * pt.erf(X) - pt.erf(Y),
    "other offsets": 1.0 + pt.erf(X) - pt.erf(Y),
    "other squares": pt.erfcx(Y) - pt.exp(pt.sqr(X) - pt.sqr(Y)) * pt.erfcx(X),
    "mixed signs": pt.erfcx(-Y) - pt.exp(pt.sqr(Y) - pt.sqr(X)) * pt.erfcx(X),
    "another shape": pt.erf(X) - pt.erf(pt.dmatrix("z")),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_logarithms_stay(name):
    difference, more = DIFFERENCES[name]
    (found,) = expand_logarithms([pt.log(difference)], [X, Y])
    assert "LogNormalProbability" in kinds(found)
    assert not {"Erf", "Erfc", "Erfcx", "Log"} & set(kinds(found))
    x, y = np.array([0.3, 1.0, 2.5]), np.array([0.1, -1.0, 2.4])
    value = pytensor.function([X, Y], found, mode=pytensor.compile.Mode("py", None))
    expected = np.log(special.ndtr(x) - special.ndtr(y)) + more(x, y)
    np.testing.assert_allclose(value(x, y), expected, rtol=1e-9)


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left_alone(name):
    with pytest.raises(NoLogarithmError):
        log_of_difference(OTHERS[name].owner)
