"""From a problem and settings to the one frozen target of a step method."""

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import AllRowsTogether, uniform_sampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import (
    CrankNicolsonProposal,
    GaussianApproximation,
    Proposal,
    ProposalMixture,
    RandomWalkProposal,
    SurrogateHamiltonianProposal,
    try_proposal,
)
from pymc_austerity.setup.control_variates import with_control_variates
from pymc_austerity.setup.gradients import with_gradients
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_free import row_free_difference
from pymc_austerity.setup.row_functions import row_differences
from pymc_austerity.setup.setup_progress import Say, collection_paused
from pymc_austerity.setup.support import is_unconstrained, refuse_local
from pymc_austerity.setup.surrogate_anchor import with_surrogate
from pymc_austerity.setup.target import ANYTHING, May, NoPlan, Target

_FEW_TRAJECTORIES = 2, 1.5
"""Number and length of trajectories that evaluate rows."""

_MANY_ENTRIES = 100
"""With more, trajectories are as few as those that evaluate rows: they take time quadratic in the
number of entries."""


@collection_paused()
def build(
    problem: Problem,
    settings: Settings,
    proposal: Proposal[Any] | None = None,
    *,
    anchor: NDArray | None = None,
    earlier: NDArray | None = None,
    say: Say = str,
    may: May = ANYTHING,
) -> tuple[Target, Proposal[Any]]:
    """Compile what decisions need, choose how rows are sampled, and approximate the posterior.

    Parameters
    ----------
    problem : Problem
        What to sample.
    settings : Settings
        What the user chose.
    proposal : Proposal, optional
        The user's; None selects the default.
    anchor : array, shape (d,), optional
        Where to expand, instead of at the mode.
    earlier : array, shape (n, d), optional
        Draws of an earlier run, whose moments are used to approximate the posterior.
    say : callable
        Shows which stage begins.
    may : May
        What the plan may do.

    Returns
    -------
    target : Target
        The posterior in the form that decisions use.
    proposal : Proposal
        Makes new points, with the gradients that it needs.

    Raises
    ------
    SettingError
        A variable has one entry per row, or the user's settings are not possible for the model.
    """
    refuse_local(problem)
    target = _target(problem, settings, proposal, anchor, say, may)
    if earlier is not None and is_unconstrained(problem.variables, problem.model, proposal):
        own = GaussianApproximation.of_points(earlier) or target.approximation
        target = replace(target, approximation=own)
    if proposal is None:
        proposal = _default_proposal(target)
    else:
        proposal = with_gradients(proposal, problem, target, settings)
        proposal = with_surrogate(proposal, problem, target)
    try_proposal(proposal, problem.layout, target.approximation, problem.start)
    return target, proposal


def _default_proposal(target: Target) -> Proposal[Any]:
    """Trajectories for hierarchies and for what is far from normal; else usual moves."""
    if isinstance(target.sampling, AllRowsTogether):
        return CrankNicolsonProposal()
    if target.anchor is None:
        return RandomWalkProposal()
    if target.surrogate is None:
        return ProposalMixture()
    are_dear = target.n_kept or target.anchor.point.size > _MANY_ENTRIES
    proposal = SurrogateHamiltonianProposal(*(_FEW_TRAJECTORIES if are_dear else ()))
    return proposal.with_surrogate(target.surrogate)


def _target(
    problem: Problem,
    settings: Settings,
    proposal: Proposal[Any] | None,
    anchor: NDArray | None,
    say: Say,
    may: May,
) -> Target:
    say("compiling")
    exact, without = row_free_difference(problem), NoPlan("")
    if settings.order and not settings.is_exact:
        found: Target | NoPlan = NoPlan("its variables cannot move in every direction")
        if is_unconstrained(problem.variables, problem.model, proposal):
            found = with_control_variates(
                problem,
                settings,
                exact,
                by_default=proposal is None,
                anchor=anchor,
                say=say,
                may=may,
            )
        if isinstance(found, Target):
            return found
        without = found
        _refuse_without_control_variates(settings, without.reason)
    say("storing the rows")
    source = problem.prepared.shuffled_rows
    differences, compiled_as = row_differences(problem)
    differences(problem.start, problem.start, *source.window(0, 1))
    usual = settings.without_control_variates(by_single_rows=bool(problem.moving_support))
    sampling, words = uniform_sampling(differences, source, usual)
    if usual.is_exact and not settings.is_exact:
        words += ", the default without control variates"
    return Target(
        problem.layout,
        problem.start,
        exact,
        differences,
        source,
        sampling,
        None,
        (f"{words}.",),
        compiled_as,
        without.modes,
        without.modes[0] if without.modes else None,
        without=_in_a_sentence(without, all_rows=usual.is_exact),
        no_control_variates=without.reason,
    )


def _in_a_sentence(without: NoPlan, *, all_rows: bool) -> str:
    if not without.reason:
        return ""
    cheaper = ", or give epsilon= to read fewer rows at the price of wrong decisions"
    remedy = without.remedy or f"use NUTS if this is too slow{cheaper if all_rows else ''}"
    return f"There are no control variates because {without.reason}: {remedy}."


def _refuse_without_control_variates(settings: Settings, reason: str) -> None:
    if settings.only_with_surrogate:
        raise SettingError(f"{reason}: sample all rows by NUTS.")
    if settings.decides_exactly:
        raise SettingError(
            f"{settings.who_decides_exactly} is not possible without control variates, and there "
            f"are none because {reason}: use AusterityMH(), which does not need them."
        )
    if settings.control_variates != "auto":
        raise SettingError(
            f"control_variates={settings.control_variates!r} is not possible because {reason}: use "
            "control_variates='auto', which omits them where necessary."
        )
    if settings.sampling == "strata":
        raise SettingError(
            f"sampling='strata' is not possible without control variates, and there are none "
            f"because {reason}: use sampling='auto', which samples uniformly where necessary."
        )
