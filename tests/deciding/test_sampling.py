"""Samples of differences, from rows that are numbers."""

import numpy as np
import pytest

from pymc_austerity.deciding.sampling import StratifiedSampling, UniformSampling
from pymc_austerity.rows import AllRows, ArrayRows, FreshRows, StratifiedWindows, Windows
from pymc_austerity.strata import Strata

N_ROWS = 1_200
SIZES = np.array([400, 600, 200])
ENDS = np.cumsum(SIZES)[:-1]
VALUES = np.random.default_rng(3).normal(size=N_ROWS) + np.linspace(0.0, 2.0, N_ROWS)
PROPOSED, CURRENT = np.array([2.0]), np.array([0.5])


def difference(proposed, current, values):
    return (proposed - current) * values


TOTAL = difference(PROPOSED, CURRENT, VALUES).sum()


def uniform(draw=Windows, batch_size=100, **settings):
    return UniformSampling(difference, draw(ArrayRows([VALUES])), N_ROWS, batch_size, **settings)


def stratified(first_counts=(40, 60, 20), order=4):
    strata = Strata(SIZES, np.array(first_counts))
    shuffled = [np.random.default_rng(order).permutation(part) for part in np.split(VALUES, ENDS)]
    windows = StratifiedWindows(ArrayRows([np.concatenate(shuffled)]), strata)
    parts = [difference(PROPOSED, CURRENT, part) for part in shuffled]
    return StratifiedSampling(difference, windows, np.array([part.std() for part in parts]))


SAMPLINGS = {
    "windows": uniform,
    "fresh": lambda: uniform(FreshRows),
    "growing": lambda: uniform(growth=2.0),
    "strata": stratified,
}
ORDERS = {"strata": [lambda order=order: stratified(order=order) for order in range(100)]}
"""Stored orders of the rows, where samples depend on it."""


def first_looks(sampling, rng, n):
    return [sampling.begin(PROPOSED, CURRENT, rng).look() for _ in range(n)]


@pytest.mark.parametrize("name", SAMPLINGS)
def test_the_first_look_estimates_the_sum_and_its_error(name, rng):
    orders = [build() for build in ORDERS.get(name, [SAMPLINGS[name]])]
    sampling = orders[0]
    looks = [one for order in orders for one in first_looks(order, rng, 4_000 // len(orders))]
    totals = np.array([look.total for look in looks])
    assert abs(totals.mean() - TOTAL) < 4 * totals.std() / np.sqrt(totals.size)
    assert totals.var() == pytest.approx(np.mean([look.variance for look in looks]), rel=0.2)
    assert {look.n_seen for look in looks} == {sampling.strata.n_first}
    assert not sampling.is_exact


@pytest.mark.parametrize("name", SAMPLINGS)
def test_a_first_look_may_be_larger(name, rng):
    sampling = SAMPLINGS[name]()
    larger = sampling.with_first_look(300)
    n_first = larger.strata.n_first
    assert 300 <= n_first <= 480
    assert (larger.strata.first_counts <= larger.strata.sizes).all()
    for its, n_rows in ((larger, None), (sampling, 300)):
        looks = [its.begin(PROPOSED, CURRENT, rng, n_rows).look() for _ in range(500)]
        totals = np.array([look.total for look in looks])
        assert abs(totals.mean() - TOTAL) < 4 * totals.std() / np.sqrt(totals.size)
        assert {look.n_seen for look in looks} == {n_first}
    assert sampling.with_first_look(10 * N_ROWS).is_exact


@pytest.mark.parametrize("name", SAMPLINGS)
def test_the_last_look_is_the_sum(name, rng):
    survey, seen = SAMPLINGS[name]().begin(PROPOSED, CURRENT, rng), [0]
    while seen[-1] < N_ROWS:
        last = survey.look()
        seen.append(last.n_seen)
    assert (np.diff(seen) > 0).all() and seen[-1] == N_ROWS
    assert last.total == pytest.approx(TOTAL, rel=1e-10)
    assert last.variance == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", SAMPLINGS)
def test_constants_say_how_rows_are_sampled(name):
    sampling = SAMPLINGS[name]()
    assert sampling.constants["batch_size"] == sampling.strata.n_first
    assert sampling.strata.n_rows == N_ROWS


def test_all_rows_at_the_first_look_are_exact(rng):
    sampling = uniform(AllRows, N_ROWS)
    assert sampling.is_exact
    assert first_looks(sampling, rng, 1)[0].total == pytest.approx(TOTAL, rel=1e-12)
    assert stratified((400, 600, 200)).is_exact


def test_the_usual_spread_of_strata_is_that_of_their_looks(rng):
    sampling = stratified()
    spread, acceptance = sampling.usual_spread
    spreads = [look.spread for look in first_looks(sampling, rng, 200)]
    assert acceptance == 1.0
    assert spread == pytest.approx(np.mean(spreads), rel=0.05)
