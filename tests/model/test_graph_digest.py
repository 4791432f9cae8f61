"""Digests of graphs: equal for graphs that were built alike, and for no others."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py

from pymc_austerity.model import NoDigestError, graph_digest, split_log_density
from tests.zoo.all_shapes import SHAPES

SOME = "logistic", "student_t", "slopes_by_group", "normal_mixture", "einsum", "two_halves"


def digest(name):
    split = split_log_density(SHAPES[name].build(40), **SHAPES[name].settings)
    return graph_digest([split.rows, split.exact])


def test_the_same_for_models_that_are_built_alike_only():
    digests = [digest(name) for name in SOME]
    assert [digest(name) for name in SOME] == digests
    assert len(set(digests)) == len(SOME)


def inner(power):
    x = pt.vector("x")
    return OpFromGraph([x], [x**power])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x, y: x - y, lambda x, y: y - x),
        (lambda x, y: x + y, lambda x, y: x + x),
        (lambda x, y: x.sum(axis=0), lambda x, y: x.mean(axis=0)),
        (lambda x, y: x[:2], lambda x, y: x[:3]),
        (lambda x, y: x * np.arange(3.0), lambda x, y: x * np.array([0.0, 1.0, 2.5])),
        (lambda x, y: x.astype("float32"), lambda x, y: x.astype("float64")),
        (lambda x, y: inner(2)(x), lambda x, y: inner(3)(x)),
        (lambda x, y: pt.vector("z"), lambda x, y: pt.vector("z", dtype="float32")),
    ],
)
def test_other_operations_constants_and_types(one, other):
    def of(write):
        return graph_digest([write(pt.vector("x", shape=(3,)), pt.vector("y", shape=(3,)))])

    assert of(one) != of(other)
    assert of(one) == of(one)


def test_what_was_defined_elsewhere_is_named():
    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def doubled(x):
        return 2.0 * x

    with pytest.raises(NoDigestError, match=r"doubled|FromFunctionOp"):
        graph_digest([doubled(pt.dvector("x"))])
