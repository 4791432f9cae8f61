import numpy as np
import pytest

from pymc_austerity.sequential import Moments


@pytest.mark.parametrize("sizes", [(7,), (1, 1, 1), (500, 3, 250), (2, 1_000)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_agrees_with_numpy(sizes, offset, rng):
    values = rng.normal(size=sum(sizes)) + offset
    moments = Moments()
    for block in np.split(values, np.cumsum(sizes)[:-1]):
        moments.add(block)
    assert moments.count == values.size
    assert moments.mean == pytest.approx(values.mean(), rel=1e-14)
    # the centered squares keep ten digits although the mean is a million times the spread
    assert moments.variance == pytest.approx(values.var(ddof=1), rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_not_finite_shows(bad):
    moments = Moments()
    moments.add(np.array([1.0, 2.0]))
    moments.add(np.array([3.0, bad]))
    assert moments.count == 4
    assert not np.isfinite(moments.mean)


def test_rounding_is_not_spread():
    moments = Moments()
    for _ in range(3):
        moments.add(np.full(7, 0.1) + np.array([0, 1, 0, 0, -1, 0, 0]) * 1e-17)
    assert moments.variance == 0.0


def test_tiny_spread_is_spread(rng):
    values = 1.0 + 1e-10 * rng.normal(size=100)
    moments = Moments()
    moments.add(values)
    assert moments.variance == pytest.approx(values.var(ddof=1), rel=1e-4)
