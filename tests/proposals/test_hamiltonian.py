"""Hamiltonian moves on a surrogate, in the contract of a proposal."""

import math

import numpy as np
import pytest

from pymc_austerity import SettingError, SurrogateHamiltonianProposal
from pymc_austerity.proposals import DualAveraging, Layout, Outcome, hamiltonian
from tests.proposals.surrogates import skewed
from tests.references import moments_of

LAYOUT = Layout.continuous(2)


def bound(surrogate=None, **settings):
    proposal = SurrogateHamiltonianProposal(**settings).with_surrogate(surrogate or skewed())
    return proposal, proposal.init(LAYOUT)


def chain(proposal, state, n_steps, rng, *, tune=False):
    """Points of a chain on the surrogate itself, for which every proposal is right."""
    point, points = np.zeros(2), []
    for _ in range(n_steps):
        new, log_ratio, state = proposal.propose(state, point, rng)
        accepted = log_ratio > -np.inf
        following = new if accepted else point
        if tune:
            state = proposal.tune(state, Outcome(point, following, accepted, 0))
        point = following
        points.append(point)
    return np.array(points), state


class TestLogRatio:
    def test_cancels_the_surrogate(self, rng):
        proposal, state = bound()
        point = rng.normal(size=2)
        new, log_ratio, _ = proposal.propose(state, point, rng)
        assert log_ratio == -proposal.surrogate.difference(new, point)
        assert log_ratio != 0.0

    def test_is_antisymmetric(self, rng):
        """The way back has the opposite one, whatever the trajectories were."""
        surrogate = skewed()
        there, here = rng.normal(size=(2, 2))
        assert surrogate.difference(there, here) == pytest.approx(
            -surrogate.difference(here, there)
        )

    def test_where_nothing_was_accepted_the_proposal_is_rejected(self, rng):
        proposal, state = bound()
        state = state._replace(averaging=DualAveraging.begin(1e3))
        point = np.ones(2)
        new, log_ratio, state = proposal.propose(state, point, rng)
        assert log_ratio == -math.inf
        assert new is point
        assert state.acceptance < 1e-6


class TestTuning:
    @pytest.mark.parametrize("target", [0.65, 0.9])
    def test_finds_the_acceptance_that_is_wanted(self, target, rng):
        proposal, state = bound(target_acceptance=target)
        _, state = chain(proposal, state, 900, rng, tune=True)
        state = proposal.freeze(state)
        found = []
        for _ in range(200):
            *_, state = proposal.propose(state, np.zeros(2), rng)
            found.append(state.acceptance)
        assert np.mean(found) == pytest.approx(target, abs=0.1)

    def test_learns_the_metric(self, rng):
        proposal, state = bound()
        points, state = chain(proposal, state, 3_100, rng, tune=True)
        covariance = state.root @ state.root.T
        np.testing.assert_allclose(covariance, np.cov(points[600:].T), rtol=0.3, atol=0.1)

    def test_nothing_is_learnt_afterwards(self, rng):
        proposal, state = bound()
        _, state = chain(proposal, state, 250, rng, tune=True)
        frozen = proposal.freeze(state)
        assert len(frozen.path.to_array()) == 0
        _, later = chain(proposal, frozen, 50, rng)
        assert later.averaging == frozen.averaging
        assert later.root is frozen.root


def test_draws_have_the_moments_of_the_surrogate(rng):
    """log Gamma(3) twice, with a normal factor of the rows in the second entry: by quadrature."""
    proposal, state = bound()
    points, state = chain(proposal, state, 6_000, rng)
    grid = np.linspace(-6.0, 6.0, 4_001)
    for i, curvature in enumerate((0.0, 2.0)):
        mean, sd = moments_of(3.0 * grid - np.exp(grid) - 0.5 * curvature * grid**2, grid)
        assert abs(points[:, i].mean() - mean) < 5.0 * sd / math.sqrt(1_500)
        assert points[:, i].std() == pytest.approx(sd, rel=0.1)


class TestBadInput:
    def test_without_a_surrogate(self):
        with pytest.raises(SettingError, match="by itself"):
            SurrogateHamiltonianProposal().init(LAYOUT)


class TestTails:
    """The posterior is wider than the surrogate, which is exp(16) times less where chains begin."""

    @staticmethod
    def escaped(rng, n_steps=3_000):
        """Whether a chain comes from a tail to the bulk."""
        proposal, state = bound()
        surrogate, point = proposal.surrogate, np.array([0.0, -5.0])
        for _ in range(n_steps):
            new, log_ratio, state = proposal.propose(state, point, rng)
            excess = -0.4 * surrogate.difference(new, point)
            if log_ratio > -np.inf and math.log(rng.random()) < excess:
                point = new
        return point[1] > -2.0

    def test_are_left(self, rng):
        assert all(self.escaped(rng) for _ in range(5))

    def test_are_not_left_by_long_trajectories_alone(self, rng, monkeypatch):
        monkeypatch.setattr(hamiltonian, "_SINGLE", 0.0)
        assert not all(self.escaped(rng) for _ in range(5))
