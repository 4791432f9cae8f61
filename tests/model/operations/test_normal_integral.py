"""The logarithm of a normal integral, its derivatives and their enclosures."""

from math import pi

import numpy as np
import pytest
from scipy import special

from pymc_austerity.model.operations.jets import Interval, point
from pymc_austerity.model.operations.normal_probability import (
    log_normal_probability_jet,
    taylor_coefficients,
)

ORDER = 6
EVERYWHERE = [(p, q) for p in (-900.0, -9.0, -0.4, 0.0, 2.0, 60.0) for q in (0.0, 0.02, 1.5, 80.0)]


def at(p, q, order=ORDER):
    found = taylor_coefficients(point(np.asarray(p)), point(np.asarray(q)), order)
    return {m: x.lower for m, x in found.items()}


def log_probability(a, b):
    """By the tail that both ends are in."""
    a, b = (a, b) if a + b < 0.0 else (-b, -a)
    return special.log_ndtr(b) + np.log1p(-np.exp(special.log_ndtr(a) - special.log_ndtr(b)))


@pytest.mark.parametrize("width", [1e-3, 0.2, 1.0, 6.0, 40.0])
@pytest.mark.parametrize("center", [-30.0, -5.0, -0.3, 0.0, 1.0, 12.0])
def test_value_is_the_probability_of_an_interval(center, width):
    jet = log_normal_probability_jet({(): point(np.array(center))}, {(): point(np.array(width))}, 0)
    expected = log_probability(center - width / 2, center + width / 2)
    np.testing.assert_allclose(jet[()].lower, expected, rtol=1e-9, atol=1e-9)


def test_a_width_below_zero_is_not_defined():
    jet = log_normal_probability_jet({(): point(np.zeros(1))}, {(): point(-np.ones(1))}, 0)
    assert np.isnan(jet[()].lower).all()


@pytest.mark.parametrize(("p", "q"), EVERYWHERE)
def test_each_derivative_is_the_slope_of_the_one_before(p, q):
    """By Richardson's extrapolation."""
    found, scale = at(p, q), 1.0 + 0.03 * abs(p) + q
    for (i, j), value in found.items():
        if i + j == ORDER:
            continue
        for which, times in ((0, i + 1), (1, j + 1)):
            if which == 1 and q == 0.0:
                continue

            def slope(step, which=which, m=(i, j)):
                up, down = ([p, q], [p, q])
                up[which], down[which] = up[which] + step, down[which] - step
                return (at(*up)[m] - at(*down)[m]) / (2.0 * step)

            h = 3e-3 * (scale if which == 0 else min(scale, q))
            extrapolated = (4.0 * slope(h) - slope(2.0 * h)) / 3.0
            expected = times * found[i + (which == 0), j + (which == 1)]
            error = 1e-6 * (abs(value) / h + abs(expected)) + 1e-10
            assert abs(extrapolated - expected) <= error, (i, j, which)


@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0, 10.0])
def test_boxes_hold_points(size):
    rng = np.random.default_rng(0)
    p, q = 20.0 * rng.standard_t(2, size=400), rng.exponential(5.0, size=400)
    q[:40] = 0.0
    dp, dq = size * rng.exponential(size=(2, 400))
    boxes = taylor_coefficients(Interval(p - dp, p + dp), Interval(q, q + dq), ORDER)
    for _ in range(10):
        u, v = rng.random((2, 400))
        for m, value in at(p + (2 * u - 1) * dp, q + v * dq).items():
            slack = 1e-9 * (abs(value) + 1.0)
            assert (boxes[m].lower - slack <= value).all(), m
            assert (value <= boxes[m].upper + slack).all(), m


def test_boxes_about_points_are_not_wide():
    """Each is wider than the range of its coefficient by a term of higher order."""
    p, q, h = 3.0, 0.5, 0.02
    ends = Interval(np.array(p - h), np.array(p + h)), Interval(np.array(q - h), np.array(q + h))
    boxes, inside = (
        taylor_coefficients(*ends, ORDER),
        at(*np.mgrid[p - h : p + h : 9j, q - h : q + h : 9j]),
    )
    for m, values in inside.items():
        assert boxes[m].upper - boxes[m].lower <= 2.0 * np.ptp(values) + 0.1 * h**2


def test_a_box_of_any_size_has_finite_derivatives():
    wide = Interval(np.array(-1e3), np.array(1e3)), Interval(np.array(0.0), np.array(1e3))
    boxes = taylor_coefficients(*wide, ORDER)
    assert all(np.isfinite(end) for x in boxes.values() for end in x)
    np.testing.assert_allclose(boxes[3, 0].upper, 1.0 / pi**2)


def test_an_interval_of_negative_numbers_is_not_defined():
    boxes = taylor_coefficients(point(np.zeros(1)), Interval(np.array([-1.0]), np.array([-0.5])), 3)
    assert all(np.isnan(end).all() for x in boxes.values() for end in x)
