"""Which decisions are checked, on a clock that the tests turn by hand."""

import numpy as np
import pytest

from pymc_austerity.deciding.audits import BudgetedAudits, RandomAudits


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def run(audits, clock, *, n, seconds, cost, tuning=False):
    """Decisions of some seconds each; number of checks."""
    n_checks = 0
    for _ in range(n):
        clock.now += seconds
        if audits.wants(tuning):
            clock.now += cost
            audits.took(cost)
            n_checks += 1
    return n_checks


@pytest.mark.parametrize("cost", [0.1, 5.0])
def test_the_budget_is_kept_on_average(cost):
    clock = Clock()
    audits = BudgetedAudits(0.05, clock)
    audits.begin(np.random.default_rng(1))
    seconds, n = 0.01, 400_000
    assert audits.wants(tuning=True)
    audits.took(cost)
    audits.restart()
    n_checks = 1 + run(audits, clock, n=n, seconds=seconds, cost=cost)
    expected = 0.05 * n * seconds / cost
    assert abs(n_checks - 1 - expected) < 4.0 * np.sqrt(expected)


def test_tuning_pays_for_nothing_but_learning_the_cost():
    clock = Clock()
    audits = BudgetedAudits(0.05, clock)
    audits.begin(np.random.default_rng(2))
    assert run(audits, clock, n=1_000, seconds=0.1, cost=0.1, tuning=True) == 1
    audits.restart()
    n_checks = run(audits, clock, n=1_000, seconds=0.1, cost=0.1)
    assert abs(n_checks - 50) < 4 * np.sqrt(50)  # and nothing left over from before


def test_every_chain_learns_the_cost_anew():
    clock = Clock()
    audits = BudgetedAudits(0.05, clock)
    for _ in range(2):
        audits.begin(np.random.default_rng(3))
        assert audits.wants(tuning=True)
        audits.took(1.0)
        assert not audits.wants(tuning=True)


def test_a_share_of_the_decisions():
    audits = RandomAudits(0.2)
    audits.begin(np.random.default_rng(4))
    n_checks = sum(audits.wants(tuning=False) for _ in range(10_000))
    assert abs(n_checks - 2_000) < 4 * np.sqrt(1_600)
    assert not any(RandomAudits(0.0).wants(tuning=False) for _ in range(100))


def test_slow_decisions_are_not_checked_more_often():
    """Nor are those that follow them, which are slow themselves where slowness lasts."""
    clock, rng = Clock(), np.random.default_rng(5)
    audits = BudgetedAudits(0.05, clock)
    audits.begin(np.random.default_rng(6))
    assert audits.wants(tuning=True)
    audits.took(1.0)
    audits.restart()
    slow, checked, n_slow = False, [], 0
    for _ in range(200_000):
        slow = slow != (rng.random() < 0.02)
        n_slow += slow
        clock.now += 0.3 if slow else 0.01
        if audits.wants(tuning=False):
            clock.now += 1.0
            audits.took(1.0)
            checked.append(slow)
    share = n_slow / 200_000
    assert abs(np.mean(checked) - share) < 4.0 * np.sqrt(share * (1 - share) / len(checked)) + 0.05
