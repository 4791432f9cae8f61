"""Log-sum-exp and softmax, against sums of exponentials at points and by brute force in boxes."""

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import special

from pymc_austerity.model.bounds.array_rules import log_sum_exp, softmax
from pymc_austerity.model.operations import enclosures, jets
from pymc_austerity.model.operations.enclosures import Enclosed, values_of
from pymc_austerity.model.operations.jets import Interval, point

ORDER, N_CELLS, N_TERMS = 4, 40, 3
X = pt.dmatrix("x")
NODES = {
    "log_sum_exp": pt.log(pt.exp(X).sum(axis=1)).owner,
    "with the axis": pt.log(pt.exp(X).sum(axis=1, keepdims=True)).owner,
    "softmax": pt.special.softmax(X, axis=1).owner,
    "log_softmax": pt.special.log_softmax(X, axis=1).owner,
}


def enclosed(name, jet):
    x, node = Enclosed(jet, jet), NODES[name]
    if name.endswith("softmax"):
        return softmax(node.op, x, ORDER).box
    return log_sum_exp(node, x, ORDER).box


def terms(a, b):
    """Exponents that are not linear in two predictors: a**2 / 4 - b, 2 b + 1 and a b."""
    a, b = jets.predictor(a, 0, 2), jets.predictor(b, 1, 2)
    one = jets.constant_jet(np.ones(1), 2)
    parts = [
        jets.jet_sum(jets.compose(a, scaled_square(values_of(a))), jets.jet_times(b, -1.0)),
        jets.jet_sum(jets.jet_sum(b, b), one),
        jets.cauchy_product(a, b, ORDER),
    ]
    shape = values_of(a).lower.shape
    stacked = {}
    for m in {m for part in parts for m in part}:
        zero = point(np.zeros(1))
        ends = zip(*(part.get(m, zero) for part in parts), strict=True)
        full = [np.stack([np.broadcast_to(x, shape) for x in end], axis=1) for end in ends]
        stacked[m] = Interval(*full)
    return stacked


def scaled_square(x):
    square = enclosures.power(2)(x, ORDER)
    return [Interval(d.lower / 4, d.upper / 4) for d in square]


def at(points):
    jet = terms(*(point(p) for p in points))
    return {m: point(x.lower) for m, x in jet.items()}


@pytest.fixture
def boxes(rng):
    center = rng.normal(size=(2, N_CELLS))
    width = 0.3 * rng.random((2, N_CELLS))
    return center - width, center + width


@pytest.mark.parametrize("name", NODES)
def test_coefficients_at_points_are_those_of_the_plain_formula(name, boxes):
    x = at(boxes[0])
    powers = jets.compose(x, enclosures.exp(values_of(x), ORDER))
    total = {m: point(c.lower.sum(axis=1, keepdims=True)) for m, c in powers.items()}
    expected = jets.compose(total, enclosures.log(values_of(total), ORDER))
    if name.endswith("softmax"):
        expected = jets.jet_sum(x, jets.jet_times(expected, -1.0))
    if name == "softmax":
        expected = jets.compose(expected, enclosures.exp(values_of(expected), ORDER))
    found = enclosed(name, x)
    for m, c in expected.items():
        values = c.lower[:, 0] if name == "log_sum_exp" else c.lower
        np.testing.assert_allclose(found[m].lower, values, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", NODES)
def test_boxes_hold_what_is_found_at_their_points(name, boxes, rng):
    lower, upper = boxes
    over = enclosed(name, terms(*(Interval(*ends) for ends in zip(lower, upper, strict=True))))
    for _ in range(100):
        inside = lower + (upper - lower) * rng.random(lower.shape)
        for m, c in enclosed(name, at(inside)).items():
            assert (over[m].lower <= c.lower + 1e-10).all()
            assert (c.lower <= over[m].upper + 1e-10).all()


def test_the_value_is_exact_at_the_ends():
    ends = np.array([[0.0, -3.0, 700.0]]), np.array([[1.0, 900.0, 701.0]])
    found = enclosed("log_sum_exp", {(0,): Interval(*ends)})[0,]
    np.testing.assert_allclose([x[0] for x in found], special.logsumexp(ends, axis=2)[:, 0])
    shares = enclosed("softmax", {(0,): Interval(*ends)})[0,]
    assert (shares.lower >= 0.0).all() and (shares.upper <= 1.0).all()


def test_terms_of_no_weight_change_nothing():
    """An excess of zeros has no density elsewhere: its logarithm is -inf."""
    x = {(0,): point(np.array([[-np.inf, 0.5]])), (1,): point(np.array([[3.0, 1.0]]))}
    with np.errstate(all="ignore"):
        found = enclosed("log_sum_exp", x)
    np.testing.assert_allclose([found[m].lower[0] for m in ((0,), (1,), (2,))], [0.5, 1.0, 0.0])


def test_a_sum_of_rows_has_no_rule():
    node = pt.log(pt.exp(X).sum(axis=0)).owner
    x = {(0,): point(np.zeros((2, 3)))}
    with pytest.raises(NotImplementedError):
        log_sum_exp(node, Enclosed(x, x), 2)
