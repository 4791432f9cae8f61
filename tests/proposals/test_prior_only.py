"""Moves of entries that no row reads, on a known density."""

import numpy as np

from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.proposals.random_walk import PriorOnlyMoves

ENTRIES = np.array([0, 2])
PRECISION = np.array([[2.0, 0.5, 0.8], [0.5, 1.0, 0.0], [0.8, 0.0, 1.5]])
JOINT = GaussianApproximation(np.zeros(3), np.linalg.cholesky(np.linalg.inv(PRECISION)))


def row_free_part(proposed, current):
    return 0.5 * (current @ PRECISION @ current - proposed @ PRECISION @ proposed)


def run(n, rng, tune=1_000):
    moves = PriorOnlyMoves(ENTRIES, row_free_part)
    state, point, points = moves.init(JOINT), np.array([0.0, 1.0, 0.0]), []
    for step in range(tune + n):
        if step == tune:
            state = moves.freeze(state)
        point, state = moves.move(state, point, rng, tuning=step < tune)
        points.append(point)
    return np.array(points[tune:]), state


def test_entries_follow_their_distribution_given_the_others(rng):
    points, _ = run(20_000, rng)
    assert (points[:, 1] == 1.0).all()
    own = PRECISION[np.ix_(ENTRIES, ENTRIES)]
    covariance = np.linalg.inv(own)
    mean = -covariance @ PRECISION[ENTRIES, 1]
    n = points.shape[0] / 15  # about as many are independent
    standard = np.linalg.solve(np.linalg.cholesky(covariance), (points[:, ENTRIES] - mean).T)
    assert np.abs(standard.mean(axis=1)).max() < 4 / np.sqrt(n)
    assert np.abs(np.cov(standard) - np.eye(2)).max() < 4 * np.sqrt(2 / n)


def test_nothing_is_learnt_after_tuning(rng):
    _, state = run(1, rng)
    _, later = run(200, rng)
    assert state.search.scale > 0.0
    moves = PriorOnlyMoves(ENTRIES, row_free_part)
    _, after = moves.move(later, np.zeros(3), rng, tuning=False)
    assert after is later


def test_impossible_points_are_never_visited(rng):
    def half(proposed, current):
        return -np.inf if proposed[0] < 0.0 else row_free_part(proposed, current)

    moves = PriorOnlyMoves(ENTRIES, half)
    state, point, lowest = moves.init(JOINT), np.array([0.5, 1.0, 0.0]), np.inf
    for _ in range(500):
        point, state = moves.move(state, point, rng, tuning=True)
        lowest = min(lowest, point[0])
    assert 0.0 <= lowest < 0.1
