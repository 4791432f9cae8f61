"""The columns of a row agree: code, derivative and bound are those of one function."""

import inspect
import math

import numpy as np
import pytensor.scalar
import pytest

from pymc_austerity.model.kernel.formula import apply, derivatives
from pymc_austerity.model.kernel.generated import FUNCTIONS
from pymc_austerity.model.kernel.scalar import Dependence, Names, given, statements
from pymc_austerity.model.operations.enclosures import Enclosed
from pymc_austerity.model.operations.jets import point, predictor
from pymc_austerity.model.operations.table import OPERATIONS

OURS = {"Log1pOfSquare", "LogNormalProbability", "Lookup", "to_bool", "to_float", "to_int"}
OF_ONE = [
    name
    for name, row in OPERATIONS.items()
    if row.slopes and list(inspect.signature(row.slopes).parameters) == ["do", "y", "x"]
]
_OF_POSITIVE = ("Gamma", "GammaLn", "Log", "Log2", "Log10", "Psi", "Sqrt")
POINTS = {name: [0.2, 0.9, 3.1] for name in _OF_POSITIVE} | {"Log1mexp": [-2.5, -0.3]}
STEP = 1e-5


def test_names_are_those_of_pytensor():
    kinds = vars(pytensor.scalar.basic) | vars(pytensor.scalar.math)
    assert all(name in kinds or f"Scalar{name}" in kinds for name in OPERATIONS.keys() - OURS)
    assert not any(name in kinds for name in OURS)


def evaluated(formulas, x, **others):
    """Values of formulas of numbers, by the code that is written for them."""
    names = Names("t")
    code = "\n".join(statements(formulas, names))
    known = {"math": math, "x": x} | others
    known |= {name: function.py_func for name, function in FUNCTIONS.items()}
    exec(code, known)
    return [float(eval(names.of(formula), known)) for formula in formulas]


@pytest.mark.parametrize(
    ("at", "expected"), [(-0.5, [0, 1, 0]), (0.7, [1, 0, 0]), (3.0, [0, 0, 1])]
)
def test_a_clipped_number_moves_with_what_it_is(at, expected):
    arguments = x, low, high = [
        given(name, "f", Dependence.PREDICTOR) for name in ("x", "low", "high")
    ]
    slopes = derivatives(apply("Clip", arguments, "f"), [x, low, high])
    assert evaluated(slopes, at, low=0.2, high=2.0) == expected


@pytest.mark.parametrize("name", OF_ONE)
def test_columns_agree(name):
    x = given("x", "f", Dependence.PREDICTOR)
    y = apply(name, [x], "f")
    for at in POINTS.get(name, [-0.7, -0.1, 0.3, 1.7]):
        value, slope = evaluated([y, *derivatives(y, [x])], at)
        ahead, behind = (evaluated([y], at + step)[0] for step in (STEP, -STEP))
        assert slope == pytest.approx((ahead - behind) / (2 * STEP), rel=1e-7, abs=1e-9)
        if OPERATIONS[name].bound is not None:
            jet = predictor(point(np.array([at])), 0, 1)
            found = OPERATIONS[name].bound([Enclosed(jet, jet)], 1).center
            assert found[0,].lower == pytest.approx(value, rel=1e-12)
            first = found[1,].lower if (1,) in found else 0.0
            assert first == pytest.approx(slope, rel=1e-12, abs=1e-15)
