"""The test is tried where the chain is when tuning ends, on rows that are made up."""

import warnings

import numpy as np
import pytest

from pymc_austerity import AusterityWarning, StudentTTest
from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.sampling import StratifiedSampling, UniformSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.rows import ArrayRows, FreshRows, StratifiedWindows, Windows
from pymc_austerity.setup.after_tuning import look_again
from pymc_austerity.setup.embedding import Question
from pymc_austerity.strata import Strata
from tests.deciding.made_up import MadeUp, differences

N_ROWS, BATCH = 20_000, 500


def normal(rng):
    """A sum has a standard error of two nats at the first look."""
    return rng.normal(size=N_ROWS) / np.sqrt(N_ROWS) / 3.0


def rare(rng):
    """Twenty rows carry everything."""
    rows = 1e-6 * rng.normal(size=N_ROWS)
    rows[:20] -= 0.4
    return rng.permutation(rows)


def target_of(rows, draw=Windows):
    sampling = UniformSampling(differences, draw(ArrayRows([rows])), N_ROWS, BATCH)
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


def skewed(rng):
    rows = 1e-3 * rng.lognormal(sigma=1.6, size=N_ROWS)
    return rows - rows.mean()


def outlying(rng):
    """Half a dozen rows of a small stratum carry what the others lack."""
    rows = 1e-4 * rng.normal(size=N_ROWS)
    rows[:6] += 1.0
    return np.concatenate([rng.permutation(rows[:90]), rows[90:] - rows.sum() / (N_ROWS - 90)])


def in_strata(rows, sizes, first):
    strata = Strata(np.array(sizes), np.full(len(sizes), first))
    windows = StratifiedWindows(ArrayRows([rows]), strata)
    return MadeUp(rows, StratifiedSampling(differences, windows, np.full(len(sizes), 0.01)))


@pytest.mark.parametrize(
    ("rows", "sizes", "first", "most"),
    [
        (rare, [N_ROWS // 2, N_ROWS // 2], 100, 0.7),
        (skewed, [N_ROWS // 2, N_ROWS // 2], 60, 0.9),
        (outlying, [90, 910, N_ROWS - 1_000], 10, 0.1),
    ],
)
def test_first_looks_at_strata_grow_until_decisions_are_right(rows, sizes, first, most, rng):
    """Some decisions still read few rows, and all of them keep the promise."""
    target = in_strata(rows(rng), sizes, first)
    decider = Decider(Settings(), target)
    n_first = decider.sampling.strata.n_first
    assert "rows are read at the first look" in look_again(target, decider, QUESTIONS, rng)
    assert decider.sampling.strata.n_first == decider.state.batch_size > n_first
    wrong = n_rows = 0
    for question in 250 * QUESTIONS:
        decision = decider.decide(*question, rng)
        total = (target.rows * question.proposed).sum()
        wrong += decision.accept != (total > decision.log_threshold)
        n_rows += decision.n_rows_used
    assert wrong / 1_000 < 0.05 + 4 * np.sqrt(0.05 / 1_000)
    assert n_rows / 1_000 < most * N_ROWS


def test_points_where_no_row_says_anything_are_left_alone(rng):
    target = target_of(np.zeros(N_ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert look_again(target, Decider(Settings(), target), QUESTIONS, rng) == ""
