"""Decisions given bright rows against brute force."""

import math

import numpy as np
import pytest

from pymc_austerity.exact import BoundViolatedError, decide_by_fireflies
from pymc_austerity.exact.decide import _drawn, bounds_at
from tests.exact.logistic import GROUPINGS, Logistic


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_bounds_hold(grouping):
    model = Logistic(300, 3, **grouping)
    sizes = np.diff(model.groups.starts)
    for u in 3.0 * np.random.default_rng(0).normal(size=(50, 3)):
        assert (abs(model.remainders(u)) <= np.repeat(bounds_at(u, model.groups), sizes)).all()


def test_beyond_the_balls_there_is_no_bound():
    model = Logistic(30, 2)
    assert np.isinf(bounds_at(np.array([0.0, 20.1]), model.groups)).all()


def test_rows_are_drawn_without_repetition_and_all_alike():
    starts, counts = np.array([0, 4, 5, 15]), np.array([3, 1, 4])
    rng, n, seen = np.random.default_rng(1), 4_000, np.zeros(15)
    for _ in range(n):
        rows, which = _drawn(starts, counts, rng)
        assert len(set(rows)) == 8
        assert ((rows >= starts[which]) & (rows < starts[which + 1])).all()
        seen[rows] += 1
    expected = np.repeat([3 / 4, 1.0, 4 / 10], [4, 1, 10])
    spread = np.sqrt(expected * (1 - expected) / n)
    assert (abs(seen / n - expected) <= 4.5 * spread).all()


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.few("grouping1")
def test_ratios_are_right_on_average(grouping):
    """Given fresh bright rows, the mean of the ratio is that of the likelihoods."""
    model = Logistic(40, 2, **grouping)
    u, v = np.array([0.6, -0.8]), np.array([-0.5, 1.0])
    right = math.exp(model.remainders(v).sum() - model.remainders(u).sum())
    rng = np.random.default_rng(2)
    ratios = [math.exp(model.decide_by_fireflies(u, v, rng).log_ratio) for _ in range(20_000)]
    assert np.mean(ratios) == pytest.approx(right, abs=4.5 * np.std(ratios) / math.sqrt(20_000))
    assert np.std(ratios) > 0.0


def test_few_rows_are_read_near_the_mode():
    model = Logistic(2_000, 2)
    made = model.decide_by_fireflies(
        np.array([0.1, 0.0]), np.array([0.0, 0.1]), np.random.default_rng(4)
    )
    assert made.n_bright <= made.n_rows_used < 20


def test_rows_beyond_their_bounds_are_refused():
    model, u = Logistic(2_000, 2), np.array([8.0, 6.0])

    def too_much(rows):
        return np.full(rows.size, 5.0)

    def decide():
        rng = np.random.default_rng(5)
        return decide_by_fireflies(too_much, too_much, u, -u, 0.0, model.groups, rng)

    with pytest.raises(BoundViolatedError, match=r"row \d+ in storage changed by 5 nats"):
        decide()
