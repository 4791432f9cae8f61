"""Chains start where their proposals can leave, and still farther apart than the posterior is."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, CrankNicolsonProposal

N_GROUPS, N_EVENTS, N_CHAINS = 10, 4, 30


@pytest.fixture(scope="module")
def step():
    """An independence sampler of logits of rare events, whose tails are far from normal."""
    group = np.arange(5_000) % N_GROUPS
    y = np.zeros(group.size)
    y[: N_EVENTS * N_GROUPS] = 1.0
    with pm.Model():
        logit = pm.Flat("logit", shape=N_GROUPS)
        pm.Bernoulli("y", logit_p=logit[group], observed=y)
        return AusterityMH(proposal=CrankNicolsonProposal(), control_variates=2, audit=0.0)


def starts_of(step, n_steps=0):
    """First and last points of chains."""
    found = []
    for rng in np.random.default_rng(5).spawn(N_CHAINS):
        step.set_rng(rng)
        first = point = step._start()
        for _ in range(n_steps):
            point, _ = step._transition(point)
        found.append((first, point))
    return np.array(found)


def test_every_chain_moves(step):
    found = starts_of(step, 60)
    assert (found[:, 0] != found[:, 1]).any(axis=1).all()


def test_starts_are_wider_than_the_posterior(step):
    normal = step.target.approximation
    z = np.array([normal.inverse_root @ (start - normal.mean) for start in starts_of(step)[:, 0]])
    assert 1.2 < z.std() < 2.0


def test_random_numbers_of_the_chain_do_not_depend_on_tries(step):
    step.set_rng(np.random.default_rng(5))
    before = step._separate_rng().random()
    step._is_left(step.target.start, step._separate_rng())
    assert step._separate_rng().random() == before
