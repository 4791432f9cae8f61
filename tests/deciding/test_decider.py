"""A decider on rows that are made up: no model, no PyMC."""

import numpy as np
import pytest

from pymc_austerity import BarkerTest
from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.sampling import UniformSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.rows import ArrayRows, Windows
from tests.deciding.made_up import MadeUp, differences

N_ROWS = 2_000
ONE, OTHER = np.array([1.0]), np.array([0.0])


def target_of(mean, **parts):
    """Differences that sum up to the mean of the rows."""
    rows = np.random.default_rng(1).standard_normal(N_ROWS)
    rows = (rows + mean - rows.mean()) / N_ROWS
    sampling = UniformSampling(differences, Windows(ArrayRows([rows])), N_ROWS, 200)
    return MadeUp(rows, sampling, **parts)


@pytest.mark.parametrize("part", ["mean", "exact", "expanded"])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_every_part_of_the_ratio_counts(part, sign, rng):
    target = target_of(**{"mean": 0.0, part: sign * 50.0})
    decision = Decider(Settings(audit=1.0), target).decide(ONE, OTHER, 0.0, rng)
    assert decision.accept is decision.exact_accept is (sign > 0)


def test_so_does_the_proposals_log_ratio(rng):
    decider = Decider(Settings(), target_of(20.0))
    assert decider.decide(ONE, OTHER, 0.0, rng).accept
    assert not decider.decide(ONE, OTHER, -60.0, rng).accept


@pytest.mark.parametrize("exact", [-np.inf, np.nan])
def test_the_exact_part_alone_can_rule_a_proposal_out(exact, rng):
    decision = Decider(Settings(), target_of(0.0, exact=exact)).decide(ONE, OTHER, 0.0, rng)
    assert not decision.accept and decision.exact and decision.n_rows_used == 0


@pytest.mark.parametrize("test", [None, BarkerTest()])
def test_decisions_that_are_not_right_or_wrong(test, rng):
    decider = Decider(Settings(test=test), target_of(0.0))
    assert decider.decide(ONE, OTHER, 0.0, rng).exact_accept is None
    assert np.isnan(decider.epsilon)


def test_audits_leave_the_chains_random_numbers_alone():
    told = []
    for audit in (0.0, 1.0):
        rng, decider = np.random.default_rng(3), Decider(Settings(audit=audit), target_of(-0.5))
        decider.begin_chain(rng)
        told.append([decider.decide(ONE, OTHER, 0.0, rng).accept for _ in range(50)])
    assert told[0] == told[1] and 10 < sum(told[0]) < 40


def test_a_designed_test_takes_the_place_of_the_worst_case(rng):
    decider = Decider(Settings(max_error=0.05), target_of(30.0))
    worst = decider.epsilon
    for _ in range(100):
        decider.decide(ONE, OTHER, 0.0, rng, tuning=True)
    assert len(decider.state.trial) == 50
    assert decider.stop_tuning().startswith("Designed on decisions of the tuning phase")
    assert decider.epsilon > worst and decider.state.trial == []
    decider.reset()
    assert decider.epsilon == worst
