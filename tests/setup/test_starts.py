"""Where chains start: overdispersed, and never where the log-density is not finite."""

import numpy as np
import pytest

from pymc_austerity.proposals import GaussianApproximation, Layout
from pymc_austerity.setup.starts import disperse, moved_uniformly

POINT = np.array([1.0, 2.0, 3.0])
LAYOUT = Layout(np.array([0, 2, 0]))
NORMAL = GaussianApproximation(np.full(3, 5.0), 0.1 * np.eye(3))


def everywhere(candidate):
    return True


def nowhere(candidate):
    return False


def dispersed(point, is_possible, rng, move=moved_uniformly):
    def moved(radius, rng):
        return move(LAYOUT, point, radius, rng)

    return disperse(moved, point, is_possible, rng, width=1.0)


def test_real_entries_move_within_one_and_others_stay(rng):
    starts = np.array([dispersed(POINT, everywhere, rng) for _ in range(200)])
    assert (starts[:, 1] == POINT[1]).all()
    moves = (starts - POINT)[:, [0, 2]]
    assert 0.9 < np.abs(moves).max() <= 1.0
    assert abs(moves.mean()) < 4 * np.sqrt(1 / 3 / moves.size)


def test_about_an_approximation_with_twice_its_spread(rng):
    starts = np.array(
        [disperse(NORMAL.dispersed, POINT, everywhere, rng, is_left=everywhere) for _ in range(500)]
    )
    assert starts.mean() == pytest.approx(5.0, abs=4 * 0.2 / np.sqrt(1_500))
    assert starts.std() == pytest.approx(0.2, rel=4 / np.sqrt(2 * 1_500))


def test_candidates_come_closer_until_one_is_possible(rng):
    def near(candidate):
        return np.abs(candidate - POINT).max() < 0.01

    start = dispersed(POINT, near, rng)
    assert near(start)


def test_the_point_itself_where_nothing_is_possible(rng):
    assert dispersed(POINT, nowhere, rng) is POINT
    assert disperse(NORMAL.dispersed, POINT, nowhere, rng, is_left=everywhere) is POINT


def test_starts_that_no_proposal_leaves_are_followed_by_less_wide_ones(rng):
    def near(candidate):
        return np.abs(candidate - NORMAL.mean).max() < 0.2

    starts = [disperse(NORMAL.dispersed, POINT, everywhere, rng, is_left=near) for _ in range(200)]
    assert np.mean([near(start) for start in starts]) > 0.98
    assert np.std(np.array(starts) - NORMAL.mean) > 0.07


def test_where_no_start_is_left_the_last_one_stays(rng):
    starts = [
        disperse(NORMAL.dispersed, POINT, everywhere, rng, is_left=nowhere) for _ in range(500)
    ]
    assert np.std(starts) == pytest.approx(0.2 * 0.75**9, rel=4 / np.sqrt(2 * 1_500))


def test_a_proposal_may_know_better(rng):
    class Knowing:
        def disperse(self, layout, point, radius, rng):
            return point + 7.0 * radius

    start = dispersed(POINT, everywhere, rng, move=Knowing().disperse)
    np.testing.assert_array_equal(start, POINT + 7.0)


def test_the_type_of_the_point_stays(rng):
    point = POINT.astype(np.float32)
    assert dispersed(point, everywhere, rng).dtype == np.float32
    assert (
        disperse(NORMAL.dispersed, point, everywhere, rng, is_left=everywhere).dtype == np.float32
    )
