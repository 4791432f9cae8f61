"""A short run before the chains, to find the mean of the posterior."""

from pymc_austerity.deciding.choice import decider_of
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.proposals import Center, GaussianApproximation, Outcome, ProposalMixture
from pymc_austerity.proposals.random_walk import PriorOnlyMoves
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.ratio import PosteriorRatio

__all__ = ["about_mean"]

_ROUNDS = (250, 500, 1_000, 2_000)
"""Steps about each of the centers found so far."""

_CLOSE = 0.01
"""Uncertainty of the center, a squared distance in standard deviations, below which no further
steps are made."""

_EFFICIENT = 0.4
"""Independent draws per step beyond which there is little to gain."""


def about_mean(
    ratio: PosteriorRatio,
    approximation: GaussianApproximation,
    mixture: ProposalMixture,
    problem: Problem,
    untouched: PriorOnlyMoves | None = None,
) -> GaussianApproximation:
    """Move the normal approximation from the mode of the posterior to its mean.

    Where the posterior is skewed, proposals from a normal distribution about its mode are hardly
    ever accepted. The decisions of this run cost as little as those of any other, and they use the
    expansion about the mode, which need not be computed again.

    Parameters
    ----------
    ratio : PosteriorRatio
        The target of decisions, with an anchor.
    approximation : GaussianApproximation
        That about the mode.
    mixture : ProposalMixture
        Proposals.
    problem : Problem
        Layout of the variables, type of their points, and source of randomness.
    untouched : PriorOnlyMoves, optional
        Further moves that are made at every step.
    """
    decider, center = decider_of(Settings(audit=0.0), ratio), Center.begin(approximation)
    rng, layout = problem.prepared.rng, problem.layout
    current = approximation.mean.astype(problem.start.dtype)
    for n_steps in _ROUNDS:
        state = mixture.init(layout, approximation)
        walk = None if untouched is None else untouched.init(approximation)
        center = center.discounted()
        for _ in range(n_steps):
            if untouched is not None and walk is not None:
                current, walk = untouched.move(walk, current, rng, tuning=True)
            proposed, log_ratio, state = mixture.propose(state, current, rng)
            decision = decider.decide(proposed, current, log_ratio, rng, tuning=True)
            following = proposed if decision.accept else current
            outcome = Outcome(current, following, decision.accept, decision.n_rows_used)
            state, current = mixture.tune(state, outcome), following
            center = center.after(outcome)
        if center.independence > _EFFICIENT:
            break
        approximation = center.estimate()
        if center.uncertainty < _CLOSE:
            break
    return approximation
