"""The design of a test for a wanted error, on decisions made up for it."""

import numpy as np
import pytest

from pymc_austerity.deciding.decider import TrialDecision, TrialPlan, trial_plan
from pymc_austerity.deciding.sampling import UniformSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.strata import Strata

N_ROWS = 10_000


def decisions(n, distance, rng, spread=1.0):
    """Distances from the threshold of about some size, nats, and what rows differ by."""
    deviation = np.array([spread * np.sqrt(N_ROWS - 1) / N_ROWS])
    return [TrialDecision(distance * rng.standard_normal(), deviation) for _ in range(n)]


def test_easy_decisions_get_a_cheaper_test_than_the_worst_case(rng):
    plan = TrialPlan(0.01, N_ROWS)
    easy = plan.design(decisions(200, 50.0, rng))
    close = plan.design(decisions(200, 1.0, rng))
    assert easy.expected_data_fraction < close.expected_data_fraction
    assert close.epsilon >= plan.worst_case().epsilon


def test_too_few_decisions_design_nothing(rng):
    assert TrialPlan(0.01, N_ROWS).design(decisions(29, 1.0, rng)) is None


@pytest.mark.parametrize(
    "useless",
    [
        TrialDecision(-np.inf, np.array([0.01])),
        TrialDecision(1.0, np.array([0.0])),
        TrialDecision(1.0, np.array([np.inf])),
    ],
)
def test_decisions_that_needed_no_rows_are_left_out(useless, rng):
    plan, known = TrialPlan(0.01, N_ROWS, batch_size=500), decisions(40, 2.0, rng)
    assert repr(plan.design([useless] * 100 + known)) == repr(plan.design(known))
    assert plan.design([useless] * 100) is None


def test_the_users_batch_size_stays(rng):
    plan = TrialPlan(0.01, N_ROWS, batch_size=300)
    assert not plan.chooses_batch_size
    assert plan.worst_case().batch_size == plan.design(decisions(50, 3.0, rng)).batch_size == 300


def test_strata_keep_their_first_look():
    strata = Strata(np.array([100, 4_900, 5_000]), np.array([100, 50, 50]))
    plan = TrialPlan(0.01, N_ROWS, strata=strata, deviations=np.full(3, 0.01))
    assert plan.worst_case().batch_size == 200


def test_every_second_decision_is_seen_to_the_end():
    plan = TrialPlan(0.01, N_ROWS)
    assert [plan.wants(n) for n in range(1, 5)] == [False, True, False, True]


@pytest.mark.parametrize(
    ("settings", "batch_size"), [(Settings(), 500), (Settings(max_error=0.01), N_ROWS)]
)
def test_nothing_to_design_without_a_wanted_error_or_without_errors(settings, batch_size):
    sampling = UniformSampling(None, None, N_ROWS, batch_size)
    assert trial_plan(sampling, settings) is None
