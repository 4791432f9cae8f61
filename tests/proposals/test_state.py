"""State in, state out: no proposal changes a state, and none depends on what else it proposed."""

import pickle

import numpy as np
import pytest

from pymc_austerity.paper import LangevinProposal, ReversibleJumpProposal, StiefelProposal
from pymc_austerity.proposals import (
    Block,
    CrankNicolsonProposal,
    GaussianApproximation,
    Layout,
    Outcome,
    ProposalMixture,
    RandomWalkProposal,
    SurrogateHamiltonianProposal,
    as_proposal,
)
from tests.proposals.surrogates import skewed

N_STEPS = 130  # the windows of random walk and mixture end after 50 and 150 steps


class Gradients:
    """Of a standard normal target."""

    n_rows, batch_size, decisions = 100, 10, "metropolis"

    def draw(self, rng):
        shift = rng.standard_normal()
        return lambda point: -point + shift


REAL = Layout.continuous(4)
MATRIX = Layout(np.zeros(4, dtype=int), (Block("W", (2, 2), 0, orthonormal=True),))
SELECTION = Layout(np.array([0, 0, 2, 2]), (Block("b", (2,), 0), Block("g", (2,), 2)))
CASES = [
    (RandomWalkProposal(), REAL, np.zeros(4)),
    (RandomWalkProposal([1.0, 2.0, 3.0, 4.0]), REAL, np.zeros(4)),
    (CrankNicolsonProposal(0.5), REAL, np.zeros(4)),
    (ProposalMixture(), REAL, np.zeros(4)),
    (LangevinProposal(batch_size=10).with_gradients(Gradients()), REAL, np.zeros(4)),
    (SurrogateHamiltonianProposal(2).with_surrogate(skewed(4)), REAL, np.zeros(4)),
    (StiefelProposal(reflect=0.5), MATRIX, np.eye(2).ravel()),
    (ReversibleJumpProposal("b", "g"), SELECTION, np.array([0.5, 0.0, 1.0, 0.0])),
    (as_proposal(lambda point, rng: (point + rng.normal(size=4), 0.0)), REAL, np.zeros(4)),
]


@pytest.fixture(params=CASES, ids=lambda case: type(case[0]).__name__)
def case(request):
    proposal, layout, point = request.param
    approximation = GaussianApproximation(np.zeros(4), np.eye(4)) if layout is REAL else None
    return proposal, proposal.init(layout, approximation), point


def run(proposal, state, point, rng, n_steps=N_STEPS):
    """States, proposed points and log-ratios of a tuning chain that accepts half of all moves."""
    states, proposed = [state], []
    for _ in range(n_steps):
        new, log_ratio, state = proposal.propose(state, point, rng)
        states.append(state)
        proposed.append([*new, log_ratio, proposal.current_scaling(state)])
        accepted = bool(rng.random() < 0.5) and log_ratio > -np.inf
        following = new if accepted else point
        state = proposal.tune(state, Outcome(point, following, accepted, 100))
        states.append(state)
        point = following
    states.append(proposal.freeze(state))
    return states, np.array(proposed), point


def test_no_state_changes(case):
    proposal, state, point = case
    run(proposal, state, point, np.random.default_rng(1), n_steps=1)  # fills what is cached
    before = pickle.dumps(state)
    states, _, _ = run(proposal, state, point, np.random.default_rng(1))
    assert pickle.dumps(state) == before
    kept = [pickle.dumps(each) for each in states]
    run(proposal, states[-2], point, np.random.default_rng(2))
    assert [pickle.dumps(each) for each in states] == kept


def test_the_same_state_and_generator_give_the_same_moves(case):
    proposal, state, point = case
    _, first, _ = run(proposal, state, point, np.random.default_rng(1))
    _, second, _ = run(proposal, state, point, np.random.default_rng(1))
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first[:, :4], axis=0)) > N_STEPS // 2


def test_a_state_goes_on_after_pickling(case):
    proposal, state, point = case
    states, _, point = run(proposal, state, point, np.random.default_rng(1), n_steps=70)
    copy = pickle.loads(pickle.dumps(states[-2]))
    _, first, _ = run(proposal, states[-2], point, np.random.default_rng(3))
    _, second, _ = run(proposal, copy, point, np.random.default_rng(3))
    np.testing.assert_array_equal(first, second)
