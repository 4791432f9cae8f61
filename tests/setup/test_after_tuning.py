"""The test is tried where the chain is when tuning ends, on rows that are made up."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from pymc_austerity import AusterityWarning, StudentTTest
from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.sampling import StratifiedSampling, UniformSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.rows import ArrayRows, FreshRows, StratifiedWindows, Windows
from pymc_austerity.setup.after_tuning import look_again
from pymc_austerity.setup.surroundings import Question
from pymc_austerity.strata import Strata

N_ROWS, BATCH = 20_000, 500


def row_function(proposed, current, rows):
    return (proposed - current) * rows


@dataclass
class MadeUp:
    """Rows whose sum has a standard error of two nats at the first look."""

    rows: np.ndarray
    sampling: object
    row_function = staticmethod(row_function)

    @property
    def source(self):
        return ArrayRows([self.rows])

    def exact_part(self, proposed, current):
        return 0.0

    def expansion(self, proposed, current):
        return 0.0


def normal(rng):
    return rng.normal(size=N_ROWS) / np.sqrt(N_ROWS) / 3.0


def rare(rng):
    """Twenty rows carry everything."""
    rows = 1e-6 * rng.normal(size=N_ROWS)
    rows[:20] -= 0.4
    return rng.permutation(rows)


def target_of(rows, draw=Windows):
    sampling = UniformSampling(row_function, draw(ArrayRows([rows])), N_ROWS, BATCH)
    return MadeUp(rows, sampling)


QUESTIONS = [Question(np.array([step]), np.zeros(1), 0.0) for step in (0.5, -0.5, 1.0, -1.0)]


@pytest.fixture
def looked():
    def look(rows, settings, draw=Windows, seed=1):
        rng = np.random.default_rng(seed)
        target = target_of(rows(rng), draw)
        decider = Decider(settings, target)
        return look_again(target, decider, QUESTIONS, rng), decider

    return look


@pytest.mark.parametrize("draw", [Windows, FreshRows])
@pytest.mark.parametrize("settings", [Settings(epsilon=0.05), Settings(epsilon=0.01)])
def test_nothing_changes_where_means_are_normal_and_decisions_right(looked, draw, settings):
    def alike(rng):
        return 1e-2 * normal(rng)

    changed, decider = looked(alike, settings, draw)
    assert changed == ""
    assert decider.state.test == StudentTTest(settings.epsilon, relative=True)


def test_first_looks_grow_until_their_means_are_normal(looked):
    changed, decider = looked(rare, Settings())
    assert "from now on" in changed
    assert decider.state.batch_size > BATCH or decider.state.test == StudentTTest(0.0)


def test_a_batch_size_of_the_user_stays_and_all_rows_are_read(looked):
    changed, decider = looked(rare, Settings(batch_size=BATCH, max_error=0.01))
    assert "all rows are read from now on" in changed
    assert decider.state.test == StudentTTest(0.0)


def test_a_test_of_many_looks_is_made_stricter(looked):
    def close(rng):
        rows = 15.0 * normal(rng)
        return rows - rows.mean()

    changed, decider = looked(close, Settings())
    assert "trial decisions were wrong, more than 5.00%" in changed
    assert decider.state.test.description.epsilon < 0.05


def test_the_users_own_epsilon_stays_and_what_it_does_is_said(looked):
    with pytest.warns(AusterityWarning, match="trial decisions were wrong"):
        changed, decider = looked(rare, Settings(epsilon=0.005))
    assert changed == ""
    assert decider.state.test == StudentTTest(0.005, relative=True)


def test_strata_that_are_not_normal_give_way_to_all_rows(rng):
    rows = rare(rng)
    strata = Strata(np.array([N_ROWS // 2, N_ROWS // 2]), np.array([100, 100]))
    windows = StratifiedWindows(ArrayRows([rows]), strata)
    target = MadeUp(rows, StratifiedSampling(row_function, windows, np.array([0.01, 0.01])))
    decider = Decider(Settings(), target)
    assert "all rows are read" in look_again(target, decider, QUESTIONS, rng)
    decision = decider.decide(np.ones(1), np.zeros(1), 0.0, rng)
    assert decision.n_rows_used == N_ROWS


def test_strata_that_are_a_little_skewed_get_a_smaller_epsilon(rng):
    rows = 1e-3 * rng.lognormal(sigma=1.6, size=N_ROWS)
    rows -= rows.mean()
    strata = Strata(np.array([N_ROWS // 2, N_ROWS // 2]), np.array([60, 60]))
    windows = StratifiedWindows(ArrayRows([rows]), strata)
    sampling = StratifiedSampling(row_function, windows, np.array([0.01, 0.01]))
    target = MadeUp(rows, sampling)
    decider = Decider(Settings(), target)
    changed = look_again(target, decider, QUESTIONS, rng)
    assert "means of first looks are not normal: epsilon is" in changed
    assert 0.0 < decider.state.test.description.epsilon < 0.05
    wrong = n_rows = 0
    for question in 500 * QUESTIONS:
        decision = decider.decide(*question, rng)
        wrong += decision.accept != ((rows * question.proposed).sum() > decision.log_threshold)
        n_rows += decision.n_rows_used
    assert wrong < 0.05 * 2_000
    assert n_rows < 0.9 * 2_000 * N_ROWS


def test_points_where_no_row_says_anything_are_left_alone(rng):
    target = target_of(np.zeros(N_ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert look_again(target, Decider(Settings(), target), QUESTIONS, rng) == ""
