"""A short run before the chains, to find the mean of the posterior."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals import Center, Layout, Mixture, Outcome
from pymc_austerity.step_methods.assembly import Machinery
from pymc_austerity.step_methods.decisions import Decisions
from pymc_austerity.step_methods.settings import Settings

__all__ = ["about_mean"]

_LOOK_EVERY = 500
_FEWEST_STEPS = 2_000
"""Chains learn as much while they tune."""

_MOST_STEPS = 6_000
_MOST_PASSES = 10
"""Over all rows, if every decision were taken at its first look."""

_CLOSE = 0.01
"""Squared distance from the mean, in standard deviations, that is not worth more steps. Chains that
stick are worth fewer independent draws than it seems."""

_EFFICIENT = 0.4
"""Independent draws of a step, beyond which there is little to gain."""


def about_mean(
    machinery: Machinery,
    mixture: Mixture,
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
    mixture : Mixture
        Proposals.
    layout, start
        Layout of the variables, and an array of the type of their points.
    rng : numpy.random.Generator
        Source of randomness.
    """
    decisions = Decisions(Settings(audit=0.0))
    state = mixture.init(layout, machinery.approximation)
    center = state.center
    if center is None:
        return machinery
    sampling = machinery.sampling
    current = center.approximation.mean.astype(start.dtype)
    first_look = int(sampling.design.first_counts.sum())
    most_steps = min(_MOST_STEPS, _MOST_PASSES * sampling.design.n_rows // first_look)
    if most_steps < _FEWEST_STEPS:
        return machinery
    for n_steps in range(1, most_steps + 1):
        proposed, log_ratio = mixture.propose(state, current, rng)
        decision = machinery.decide(decisions, proposed, current, log_ratio, rng)
        following = proposed if decision.accept else current
        outcome = Outcome(current, following, decision.accept, decision.n_rows_used)
        state, current = mixture.tune(state, outcome), following
        if n_steps % _LOOK_EVERY == 0 and _is_enough(center):
            break
    return replace(machinery, approximation=center.estimate())


def _is_enough(center: Center) -> bool:
    return center.independence > _EFFICIENT or center.uncertainty < _CLOSE
