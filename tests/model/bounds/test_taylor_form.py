"""Enclosures by Taylor's formula hold the function, and are tight where terms cancel."""

import numpy as np
import pytensor.tensor as pt

from pymc_austerity.model.bounds import scalar_function
from pymc_austerity.model.bounds.enclosure import TaylorForm, about_rows, enclose
from pymc_austerity.model.operations import enclosures, jets
from pymc_austerity.model.operations.enclosures import Enclosed
from pymc_austerity.model.operations.jets import Interval, point

ORDER = 4


def formula(a, b):
    """exp(a) b - sin(b), of two predictors."""
    a, b = jets.predictor(a, 0, 2), jets.predictor(b, 1, 2)
    power = jets.compose(a, enclosures.exp(a[0, 0], ORDER))
    return jets.jet_sum(
        jets.cauchy_product(power, b, ORDER),
        jets.jet_times(jets.compose(b, enclosures.sin(b[0, 0], ORDER)), -1.0),
    )


def test_tightened_values_hold_those_at_points(rng):
    center = rng.normal(size=(50, 2))
    lower = center - 0.4 * rng.random(center.shape)
    upper = center + 0.4 * rng.random(center.shape)
    natural = Enclosed(
        formula(*map(point, center.T)),
        formula(*(Interval(a, b) for a, b in zip(lower.T, upper.T, strict=True))),
    )
    tight = TaylorForm(center, lower, upper, ORDER).tightened(natural).box
    smaller = tight[0, 0].upper - tight[0, 0].lower
    assert (smaller < natural.box[0, 0].upper - natural.box[0, 0].lower).any()
    for _ in range(100):
        inside = lower + (upper - lower) * rng.random(center.shape)
        value = formula(*map(point, inside.T))[0, 0].lower
        assert (tight[0, 0].lower <= value + 1e-12).all()
        assert (value <= tight[0, 0].upper + 1e-12).all()


def test_a_small_difference_stays_positive():
    """Both terms vary by more than their difference."""
    eta = pt.dvector("eta")
    function = scalar_function(pt.log(pt.erf(eta + 0.1) - pt.erf(eta)), [eta], [])
    wide = about_rows(np.zeros((1, 1)), np.full((1, 1), 0.2), function.constants_of([]))
    value = enclose(function, wide, ORDER).box[0,]
    assert np.isfinite(value.lower).all()


def sum_over_boxes(terms):
    eta = pt.dvector("eta")
    probabilities = pt.exp(pt.stack([pt.log(x) for x in terms(eta)], axis=1))
    function = scalar_function(probabilities.sum(axis=1), [eta], [])
    center, width = np.linspace(-0.9, 1.2, 5)[:, None], np.ones((5, 1))
    return enclose(function, about_rows(center, width, function.constants_of([])), 6).box


def test_probabilities_that_add_up_to_one_are_constant():
    box = sum_over_boxes(lambda x: [pt.erfc(x) / 2, pt.erfc(-x) / 2])
    np.testing.assert_allclose(box[0,].lower, 1.0, atol=1e-12)
    np.testing.assert_allclose(box[0,].upper, 1.0, atol=1e-12)
    assert all((x.lower == 0.0).all() for m, x in box.items() if m != (0,))


def test_a_sum_that_is_nearly_constant_is_not():
    box = sum_over_boxes(lambda x: [pt.erfc(x) / 2, pt.erfc(-x) / 2, 1e-5 * pt.erfc(x - 2.0)])
    assert (box[1,].upper > box[1,].lower).all()


def test_large_terms_that_nearly_cancel_are_not_constant():
    """Differences of log-gamma functions of a large dispersion, whose sum is of order one."""
    eta = pt.dvector("eta")
    shape = pt.exp(eta)
    graph = pt.gammaln(shape + 1.0) - pt.gammaln(shape) + 0.1 * eta
    function = scalar_function(graph, [eta], [])
    cells = about_rows(np.full((1, 1), 16.0), np.ones((1, 1)), function.constants_of([]))
    slope = enclose(function, cells, 4).box[1,]
    assert slope.lower[0] <= 1.1 <= slope.upper[0]
