"""A short run before the chains, to find the mean of the posterior."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.decider import Decisions
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.proposals import Center, Layout, Outcome, ProposalMixture
from pymc_austerity.setup.target import Machinery

__all__ = ["about_mean"]

_ROUNDS = (250, 500, 1_000, 2_000)
"""Steps about each of the centres found so far."""

_CLOSE = 0.01
"""Squared distance from the mean, in standard deviations, that is not worth more steps. Chains that
stick are worth fewer independent draws than it seems."""

_EFFICIENT = 0.4
"""Independent draws of a step, beyond which there is little to gain."""


def about_mean(
    machinery: Machinery,
    mixture: ProposalMixture,
    layout: Layout,
    start: NDArray,
    rng: np.random.Generator,
) -> Machinery:
    """Move the normal approximation from the mode of the posterior to its mean.

    Where the posterior is skewed, proposals from a normal distribution about its mode are hardly
    ever accepted. The decisions of this run cost as little as those of any other, and the
    expansion about the mode, which they use, need not be made again.

    Parameters
    ----------
    machinery : Machinery
        What decisions need; with an anchor.
    mixture : ProposalMixture
        Proposals.
    layout, start
        Layout of the variables, and an array of the type of their points.
    rng : numpy.random.Generator
        Source of randomness.
    """
    approximation = machinery.approximation
    if approximation is None:
        return machinery
    decisions, center = Decisions(Settings(audit=0.0)), Center(approximation)
    current = approximation.mean.astype(start.dtype)
    for n_steps in _ROUNDS:
        state = mixture.init(layout, approximation)
        center.discount()
        for _ in range(n_steps):
            proposed, log_ratio = mixture.propose(state, current, rng)
            decision = machinery.decide(decisions, proposed, current, log_ratio, rng)
            following = proposed if decision.accept else current
            outcome = Outcome(current, following, decision.accept, decision.n_rows_used)
            state, current = mixture.tune(state, outcome), following
            center.saw(outcome)
        if center.independence > _EFFICIENT:
            break
        approximation = center.estimate()
        if center.uncertainty < _CLOSE:
            break
    return replace(machinery, approximation=approximation)
