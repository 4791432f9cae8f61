"""A part of the rows of each stratum that stands for all of it."""

import numpy as np
import pytest

from pymc_austerity.design import first_look_statistics
from pymc_austerity.rows import ArrayRows
from pymc_austerity.setup import normality
from pymc_austerity.setup.normality import RowsToCheck
from pymc_austerity.strata import Strata

STRATA = Strata(np.array([30, 20_000, 70_000]), np.array([30, 40, 50]))


@pytest.fixture
def values(rng):
    return np.concatenate([10.0 * rng.normal(size=30), rng.exponential(size=90_000)])


def difference(proposed, current, rows):
    return proposed * rows


def known(values):
    rows = RowsToCheck.of(ArrayRows([values]), STRATA)
    return rows, rows.differences(difference, 2.0, 1.0)


def test_all_rows_unless_they_are_too_many(values):
    rows, found = known(values)
    np.testing.assert_array_equal(found, 2.0 * values)
    assert rows.total(found) == pytest.approx(2.0 * values.sum())
    np.testing.assert_array_equal(rows.everywhere(found).window(5, 9)[0], found[5:9])


def test_some_of_each_stratum(values, monkeypatch):
    monkeypatch.setattr(normality, "_MOST", 9_003)
    rows, found = known(values)
    assert rows.counts.tolist() == [30, 2_000, 7_000]
    parts = np.split(values, [30, 20_030])
    expected = [part[:count] for part, count in zip(parts, rows.counts, strict=True)]
    np.testing.assert_array_equal(found, 2.0 * np.concatenate(expected))
    sums = [len(part) * own.mean() for part, own in zip(parts, expected, strict=True)]
    assert rows.total(found) == pytest.approx(2.0 * sum(sums))
    everywhere = rows.everywhere(found)
    assert everywhere.n_rows == 90_030
    places = np.array([3, 30, 2_030, 20_029, 20_030, 27_030])
    expected = found[[3, 30, 30, 30 + 1_999, 2_030, 2_030]]
    np.testing.assert_array_equal(everywhere.take(places)[0], expected)


def test_the_t_statistic_is_that_of_all_rows(values, monkeypatch, rng):
    _, everything = known(values)
    monkeypatch.setattr(normality, "_MOST", 9_003)
    rows, found = known(values)
    n, use = 20_000, {"n_samples": 20_000, "rng": rng}
    whole = first_look_statistics([everything], STRATA, **use)
    part = first_look_statistics([found], STRATA, **use, counts=rows.counts)
    error = 4.0 * np.sqrt(2.0 * 0.05 * 0.95 / n)
    for tail in (-1.65, 1.65):
        shares = [np.mean(np.sign(tail) * s[0] > 1.65) for s in (whole, part)]
        assert abs(shares[0] - shares[1]) < 2.0 * error  # windows of a sample overlap
    assert part[2].mean() == pytest.approx(whole[2].mean(), rel=0.05)
