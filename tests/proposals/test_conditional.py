"""Moves of some entries given the others, against a normal distribution."""

import numpy as np
import pytest

from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import (
    ConditionalProposal,
    GaussianApproximation,
    Layout,
    conditional,
)

HELD, MOVED = np.array([1, 4]), np.array([0, 2, 3])


@pytest.fixture
def joint(rng):
    matrix = rng.normal(size=(5, 5))
    root = np.linalg.cholesky(matrix @ matrix.T + np.eye(5))
    return GaussianApproximation(rng.normal(size=5), root)


def test_conditional_moments_are_those_of_the_textbook(joint):
    covariance = joint.root @ joint.root.T
    given = conditional(joint, MOVED, HELD)
    across = covariance[np.ix_(MOVED, HELD)]
    gain = across @ np.linalg.inv(covariance[np.ix_(HELD, HELD)])
    np.testing.assert_allclose(given.gain, gain)
    about = given.approximation
    np.testing.assert_allclose(
        about.root @ about.root.T, covariance[np.ix_(MOVED, MOVED)] - gain @ across.T
    )


@pytest.mark.parametrize("b", [1.0, 0.6])
def test_a_normal_target_accepts_every_move(joint, b, rng):
    proposal = ConditionalProposal(HELD, b)
    state, point = proposal.init(Layout.continuous(5), joint), rng.normal(size=5)
    for _ in range(20):
        new, log_ratio, state = proposal.propose(state, point, rng)
        np.testing.assert_array_equal(new[HELD], point[HELD])
        assert (new[MOVED] != point[MOVED]).all()
        assert joint.log_density(new) - joint.log_density(point) + log_ratio == pytest.approx(
            0.0, abs=1e-9
        )
        point = new
    assert proposal.current_scaling(state) == b


def test_the_distribution_given_the_others_stays_as_it_is(joint, rng):
    proposal, n = ConditionalProposal(HELD, 0.5), 4_000
    state, point = proposal.init(Layout.continuous(5), joint), joint.mean + 1.0
    given = conditional(joint, MOVED, HELD)
    mean = given.approximation.mean + given.gain @ np.ones(2)
    draws = []
    for _ in range(n):
        start = point.copy()
        start[MOVED] = mean + given.approximation.root @ rng.standard_normal(3)
        draws.append(proposal.propose(state, start, rng)[0][MOVED])
    standard = np.linalg.solve(given.approximation.root, (np.array(draws) - mean).T)
    assert np.abs(standard.mean(axis=1)).max() < 4 / np.sqrt(n)
    assert np.abs(np.cov(standard) - np.eye(3)).max() < 4 * np.sqrt(2 / n)


def test_without_an_approximation_there_is_none():
    with pytest.raises(SettingError, match="needs the normal approximation"):
        ConditionalProposal(HELD).init(Layout.continuous(5))
    with pytest.raises(SettingError, match="b=0 is not the size of a move"):
        ConditionalProposal(HELD, 0)
