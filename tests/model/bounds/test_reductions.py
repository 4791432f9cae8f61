"""Sums of shares are constant; other sums are not, whatever they look like at the center."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_austerity.model.bounds import scalar_function
from pymc_austerity.model.bounds.enclosure import about_rows, enclose

ETA = pt.dvector("eta")
POWERS = pt.stack([pt.exp(ETA), pt.exp(-2.0 * ETA), pt.exp(0.5 * ETA)], axis=1)
SHARES = POWERS / (1.0 + POWERS.sum(axis=1, keepdims=True))
REST = 1.0 / (1.0 + POWERS.sum(axis=1))


def box_of(total, centers, order=3):
    function = scalar_function(pt.exp(total), [ETA], [])
    centers, data = np.array(centers)[:, None], function.constants_of([])
    return enclose(function, about_rows(centers, np.full_like(centers, 0.5), data), order).box


def test_shares_of_one_add_up_to_one():
    box = box_of(SHARES.sum(axis=1) + REST, [0.0, 0.3, -1.0])
    for m in ((1,), (2,), (3,)):
        assert abs(box[m].lower).max() < 1e-9 and abs(box[m].upper).max() < 1e-9


@pytest.mark.parametrize("centers", [[0.5], [0.5, 0.8]])
def test_a_sum_that_is_one_to_high_order_at_the_center_is_not_constant(centers):
    square = (ETA - 0.5) ** 2
    total = pt.sigmoid(ETA) + (pt.sigmoid(-ETA) + 0.5 * square * square * square)
    lower, upper = box_of(total, centers)[3,]
    x = np.linspace(-0.5, 0.5, 1001)
    s, first, second, third = 0.5 * x**6, 3.0 * x**5, 15.0 * x**4, 60.0 * x**3
    truth = np.exp(1.0 + s) * (first**3 + 3.0 * first * second + third) / 6.0
    assert lower[0] <= truth.min() < -1e-3 and upper[0] >= truth.max() > 1e-3
