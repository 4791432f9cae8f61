"""Every operation agrees with NumPy and SciPy over the whole range, extremes included."""

import math

import numba
import numpy as np
import pytest
from scipy import special

from pymc_austerity.model.kernel.formula import apply, cast
from pymc_austerity.model.kernel.generated import FUNCTIONS
from pymc_austerity.model.kernel.scalar import Dependence, NoKernelError, constant, given
from pymc_austerity.model.operations.table import OPERATIONS

SMALL = np.array([0.0, 1e-300, 1e-16, 1e-8, 1e-3, 0.3, 0.7, 1.0, 2.0, 5.0, 9.9, 10.1, 26.0, 37.0])
WIDE = np.concatenate([SMALL, [100.0, 700.0, 745.0, 1e10, 1e300, np.inf]])
REAL = np.concatenate([-WIDE[::-1], WIDE, [np.nan]])
POSITIVE = WIDE[1:]
NEGATIVE = -WIDE[1:]


def _trigamma(x):
    return special.polygamma(1, x)


UNARY = {
    "Neg": (np.negative, REAL),
    "Reciprocal": (np.reciprocal, REAL),
    "Sqr": (np.square, REAL),
    "Sqrt": (np.sqrt, REAL),
    "Abs": (np.abs, REAL),
    "Sign": (np.sign, REAL),
    "Identity": (np.positive, REAL),
    "IsNan": (np.isnan, REAL),
    "IsInf": (np.isinf, REAL),
    "Exp": (np.exp, REAL),
    "Log": (np.log, REAL),
    "Log2": (np.log2, POSITIVE),
    "Log10": (np.log10, POSITIVE),
    "Log1p": (np.log1p, REAL),
    "Expm1": (np.expm1, REAL),
    "Softplus": (lambda x: np.logaddexp(0, x), REAL),
    "Sigmoid": (special.expit, REAL),
    "Log1mexp": (lambda x: np.log(-np.expm1(x)), NEGATIVE[(NEGATIVE > -0.69)]),
    "Gamma": (special.gamma, np.append(POSITIVE[POSITIVE < 170], np.nan)),
    "GammaLn": (special.gammaln, np.append(POSITIVE, [0.0, np.nan])),
    "Psi": (special.digamma, np.array([1e-8, 0.1, 1.0, 2.5, 9.9, 10.0, 1e6, np.nan])),
    "TriGamma": (_trigamma, np.array([1e-8, 0.1, 1.0, 2.5, 9.9, 10.0, 1e6, np.nan])),
    "Erf": (special.erf, REAL),
    "Erfc": (special.erfc, REAL),
    "Erfcx": (special.erfcx, REAL),
    "Sin": (np.sin, REAL[np.abs(REAL) < 1e6]),
    "Cos": (np.cos, REAL[np.abs(REAL) < 1e6]),
    "Tan": (np.tan, REAL[np.abs(REAL) < 1e6]),
    "ArcTan": (np.arctan, REAL),
    "Sinh": (np.sinh, REAL[np.abs(REAL) < 700]),
    "Cosh": (np.cosh, REAL[np.abs(REAL) < 700]),
    "Tanh": (np.tanh, REAL),
    "Floor": (np.floor, REAL[np.abs(REAL) < 1e6]),
    "Ceil": (np.ceil, REAL[np.abs(REAL) < 1e6]),
}
BINARY = {
    "Sub": np.subtract,
    "TrueDiv": np.divide,
    "Add": np.add,
    "Mul": np.multiply,
    "LT": np.less,
    "GT": np.greater,
    "LE": np.less_equal,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NEQ": np.not_equal,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Pow": np.power,
    "Second": lambda x, y: y,
}


def compiled(name, n_arguments):
    """The operation as numba sees it."""
    names = ["x", "y", "z"][:n_arguments]
    code = f"lambda {', '.join(names)}: {OPERATIONS[name].written(names)}"
    known = {"math": math} | FUNCTIONS
    return numba.njit(error_model="numpy")(eval(code, known))


def values(function, *arguments):
    with np.errstate(all="ignore"):
        return np.array([float(function(*row)) for row in zip(*arguments, strict=True)])


@pytest.mark.parametrize("name", UNARY)
def test_of_one_number(name):
    reference, x = UNARY[name]
    with np.errstate(all="ignore"):
        expected = reference(x).astype(float)
    np.testing.assert_allclose(values(compiled(name, 1), x), expected, rtol=2e-14, atol=1e-320)


@pytest.mark.parametrize("name", BINARY)
def test_of_two_numbers(name):
    x, y = (a.ravel() for a in np.meshgrid(REAL, REAL))
    with np.errstate(all="ignore"):
        expected = BINARY[name](x, y).astype(float)
    np.testing.assert_allclose(values(compiled(name, 2), x, y), expected, rtol=2e-14, atol=0)


def test_the_switch_and_the_clip():
    x = REAL[REAL != 0]
    low, high = np.full(x.shape, -2.0), np.full(x.shape, 3.0)
    np.testing.assert_array_equal(values(compiled("Clip", 3), x, low, high), np.clip(x, -2, 3))
    np.testing.assert_array_equal(
        values(compiled("Switch", 3), x > 0, low, high), np.where(x > 0, -2.0, 3.0)
    )


def test_logarithm_of_one_less_a_tiny_exponential():
    x = np.array([-0.7, -5.0, -40.0, -800.0, 0.0, np.nan])
    expected = np.append(np.log1p(-np.exp(x[:4])), [-np.inf, np.nan])
    np.testing.assert_allclose(values(compiled("Log1mexp", 1), x), expected, rtol=1e-15)


def test_what_is_not_in_the_lists_is_tested_elsewhere():
    elsewhere = {
        "AND", "OR", "XOR", "Invert", "IntDiv", "Mod", "Switch", "Clip", "Log1mexp",
        "Lookup", "to_float", "to_int", "to_bool",
    }  # fmt: skip
    written = {name for name, operation in OPERATIONS.items() if operation.code is not None}
    assert written - set(UNARY) - set(BINARY) == elsewhere - {"Log1mexp"}


def test_logic_of_booleans():
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    for name, reference in {"AND": x & y, "OR": x | y, "XOR": x ^ y}.items():
        np.testing.assert_array_equal(values(compiled(name, 2), x, y), reference)
    np.testing.assert_array_equal(values(compiled("Invert", 1), x), ~x)


@pytest.mark.parametrize("name", ["to_float", "to_int"])
def test_booleans_and_integers_become_numbers(name):
    """Such as the treatment of a group, which rows read by its position."""
    for x in (np.array([True, False]), np.array([-3, 0, 2])):
        np.testing.assert_array_equal(values(compiled(name, 1), x), x.astype(float))


def test_integers_divide_as_in_numpy():
    x, y = (a.ravel() for a in np.meshgrid([-7, -2, 0, 3, 9], [-4, 1, 3]))
    np.testing.assert_array_equal(values(compiled("IntDiv", 2), x, y), x // y)
    np.testing.assert_array_equal(values(compiled("Mod", 2), x, y), x % y)


def test_conversions():
    assert cast(constant(2), "f").value == 2.0
    assert cast(constant(-2.7), "i").value == -2
    assert cast(constant(0.5), "b").value is True
    x = given("x", "i", Dependence.DATA)
    assert cast(x, "f").name == "to_float" and cast(x, "i") is x


class TestSimplification:
    x = given("x", "f", Dependence.PREDICTOR)
    c = given("c", "b", Dependence.DATA)

    def test_equal_formulas_are_one(self):
        assert apply("Exp", [self.x], "f") is apply("Exp", [self.x], "f")

    def test_numbers_are_computed(self):
        assert apply("Add", [constant(1.0), constant(2.5)], "f").value == 3.5

    def test_what_changes_nothing_is_left_out(self):
        assert apply("Add", [self.x, constant(0.0)], "f") is self.x
        assert apply("Mul", [constant(1.0), self.x], "f") is self.x
        assert apply("AND", [self.c, constant(True)], "b") is self.c

    def test_one_function_in_both_branches_is_applied_once(self):
        branches = [apply("Exp", [apply("Neg", [self.x], "f")], "f"), apply("Exp", [self.x], "f")]
        chosen = apply("Switch", [self.c, *branches], "f")
        assert chosen.name == "Exp" and chosen.arguments[0].name == "Switch"

    def test_a_bound_that_always_holds_is_not_checked(self):
        p = apply("Sigmoid", [self.x], "f")
        assert apply("GE", [p, constant(0)], "b").value is True
        assert apply("LE", [p, constant(1)], "b").value is True
        assert not apply("LE", [p, constant(0.5)], "b").is_constant

    def test_a_mask_covers_what_is_missing(self):
        mask = apply("Switch", [self.c, constant(0.0), constant(1.0)], "f")
        masked = apply("Mul", [mask, self.x], "f")
        assert masked.name == "Switch"
        assert masked.arguments[1].value == 0.0 and masked.arguments[2] is self.x

    def test_an_unknown_operation_is_refused(self):
        with pytest.raises(NoKernelError, match="GammaIncC has no rule"):
            apply("GammaIncC", [self.x, self.x], "f")

    def test_bits_of_integers_are_refused(self):
        i = given("i", "i", Dependence.DATA)
        with pytest.raises(NoKernelError, match="integers"):
            apply("AND", [i, i], "i")
