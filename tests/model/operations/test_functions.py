"""Every rule encloses the function and its derivatives."""

import numpy as np
import pytest
from scipy import special

from pymc_austerity.model.operations import enclosures
from pymc_austerity.model.operations.jets import Interval, point

ORDER = 8
REAL, POSITIVE, NEGATIVE, ABOVE_MINUS_ONE = (-4.0, 4.0), (0.2, 6.0), (-5.0, -0.2), (-0.8, 4.0)

FUNCTIONS = {
    "cos": (enclosures.cos, np.cos, REAL),
    "erf": (enclosures.erf, special.erf, REAL),
    "erfc": (enclosures.erfc, special.erfc, REAL),
    "erfcx": (enclosures.erfcx, special.erfcx, (-2.0, 4.0)),
    "exp": (enclosures.exp, np.exp, REAL),
    "expm1": (enclosures.expm1, np.expm1, REAL),
    "gamma": (enclosures.gamma, special.gamma, POSITIVE),
    "gammaln": (enclosures.gammaln, special.gammaln, POSITIVE),
    "log": (enclosures.log, np.log, POSITIVE),
    "log1mexp": (enclosures.log1mexp, lambda x: np.log(-np.expm1(x)), NEGATIVE),
    "log1p": (enclosures.log1p, np.log1p, ABOVE_MINUS_ONE),
    "log1p_of_square": (enclosures.log1p_of_square, lambda x: np.log1p(x * x), REAL),
    "power 3": (enclosures.power(3), lambda x: x**3, REAL),
    "power -1.5": (enclosures.power(-1.5), lambda x: x**-1.5, POSITIVE),
    "psi": (enclosures.psi, special.psi, POSITIVE),
    "reciprocal": (enclosures.reciprocal, lambda x: 1 / x, POSITIVE),
    "reciprocal, negative": (enclosures.reciprocal, lambda x: 1 / x, NEGATIVE),
    "sigmoid": (enclosures.sigmoid, special.expit, REAL),
    "sin": (enclosures.sin, np.sin, REAL),
    "softplus": (enclosures.softplus, lambda x: np.logaddexp(0, x), REAL),
    "sqrt": (enclosures.sqrt_, np.sqrt, POSITIVE),
    "tanh": (enclosures.tanh, np.tanh, REAL),
}


@pytest.mark.parametrize("name", FUNCTIONS)
class TestDerivatives:
    def test_at_points_are_those_of_the_function(self, name):
        """Each derivative is the slope of the one before, by Richardson's extrapolation."""
        derivatives, f, (low, high) = FUNCTIONS[name]
        x = np.linspace(low, high, 41)[1:-1]
        found = [d.lower for d in derivatives(point(x), ORDER)]
        np.testing.assert_allclose(found[0], f(x), rtol=1e-12, atol=1e-14)
        for n in range(ORDER):

            def value(y, n=n):
                return derivatives(point(y), n)[n].lower

            h = 1e-3 * (high - low) / 4
            near, far = ((value(x + s) - value(x - s)) / (2 * s) for s in (h, 2 * h))
            scale = abs(found[n]) / h + abs(found[n + 1])
            assert (abs((4 * near - far) / 3 - found[n + 1]) <= 1e-7 * scale + 1e-9).all()

    def test_over_intervals_hold_those_at_points(self, name):
        derivatives, _, (low, high) = FUNCTIONS[name]
        rng = np.random.default_rng(0)
        ends = np.sort(rng.uniform(low, high, size=(2, 300)), axis=0)
        inside = ends[0] + rng.random((20, 300)) * (ends[1] - ends[0])
        enclosures = derivatives(Interval(ends[0], ends[1]), ORDER)
        for n, (x, at) in enumerate(
            zip(enclosures, derivatives(point(inside), ORDER), strict=True)
        ):
            slack = 1e-9 * (1.0 + abs(at.lower))
            assert (x.lower <= at.lower + slack).all(), n
            assert (at.lower - slack <= x.upper).all(), n


@pytest.mark.parametrize("function", [enclosures.log, enclosures.reciprocal, enclosures.sqrt_])
def test_nothing_is_known_where_a_function_is_not_defined(function):
    with np.errstate(all="ignore"):
        found = function(Interval(np.array([-1.0]), np.array([2.0])), 3)
    assert all(np.isnan(end).all() for x in found for end in x)
