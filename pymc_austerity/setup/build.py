"""The one frozen target of a step method: of its variables, or of all that rows depend on."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import discrete_types, make_initial_point_fn
from pymc_austerity.deciding.sampling import AllRowsTogether, uniform_sampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals import (
    CrankNicolsonProposal,
    GaussianApproximation,
    Proposal,
    ProposalMixture,
    RandomWalkProposal,
    RealOrDiscreteProposal,
    SurrogateHamiltonianProposal,
    UserProposal,
    try_proposal,
)
from pymc_austerity.setup.control_variates import with_control_variates
from pymc_austerity.setup.coordinates import Coordinates
from pymc_austerity.setup.earlier_run import EarlierRun, earlier_run
from pymc_austerity.setup.embedding import Embedding, SomeVariables
from pymc_austerity.setup.gradients import with_gradients
from pymc_austerity.setup.model_inputs import draws_of_model, raveled
from pymc_austerity.setup.problem import Problem, pose
from pymc_austerity.setup.row_functions import row_differences
from pymc_austerity.setup.setup_progress import Say, collection_paused
from pymc_austerity.setup.support import is_unconstrained, refuse_local
from pymc_austerity.setup.surrogate_anchor import with_surrogate
from pymc_austerity.setup.target import ANYTHING, NOTHING, May, NoPlan, Target

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
        Draws of an earlier run, whose moments approximate the posterior where they fit it better.
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
    may_move = is_unconstrained(problem.variables, problem.model, proposal)
    if earlier is not None and may_move and not isinstance(target.sampling, AllRowsTogether):
        target = replace(target, approximation=better_of(earlier, target.approximation))
    if proposal is None:
        proposal = _default_proposal(target)
    else:
        proposal = with_gradients(proposal, problem, target, settings)
        proposal = with_surrogate(proposal, problem, target)
    try_proposal(proposal, problem.layout, target.approximation, problem.start)
    return target, proposal


def better_of(draws: NDArray, known: GaussianApproximation | None) -> GaussianApproximation | None:
    """The normal distribution that fits draws best: with their moments, or one that is known.

    Draws fit their own moments by as many nats better than other draws would as there are numbers
    estimated (Akaike, 1974, A new look at the statistical model identification).
    """
    own = GaussianApproximation.of_points(draws)
    if own is None or known is None:
        return own or known
    mine, others = (
        each.log_densities(draws).sum() - len(draws) * np.log(np.diag(each.root)).sum()
        for each in (own, known)
    )
    d = draws.shape[1]
    return own if mine - others > d * (d + 3) / 2 else known


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
    exact, without = problem.row_free_difference, NoPlan("")
    if settings.order and not settings.is_exact:
        found: Target | NoPlan = NoPlan("its variables cannot move in every direction")
        if is_unconstrained(problem.variables, problem.model, proposal):
            found = with_control_variates(
                problem,
                settings,
                by_default=proposal is None,
                anchor=anchor,
                say=say,
                may=may,
            )
        if isinstance(found, Target):
            return found
        without = found
        _refuse_without_control_variates(settings, without)
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


class SeveralModesError(SettingError):
    """The posterior has several modes, of which a warning has told."""


def _refuse_without_control_variates(settings: Settings, without: NoPlan) -> None:
    reason = without.reason
    if settings.only_with_surrogate:
        error = SeveralModesError if without.modes else SettingError
        raise error(f"{reason}: sample all rows by NUTS.")
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


# ------------------------------------------------------------------ among other variables


class Built(NamedTuple):
    """The target of a step method, and its proposal.

    Attributes
    ----------
    target : Target
        The posterior in the form that decisions use.
    proposal : Proposal
        Makes new points.
    embedding : Embedding
        How points of the step method lie in those of the target.
    about : Problem
        The problem of the target.
    usual : Proposal
        A proposal for points of the target.
    earlier : EarlierRun or None
        Draws of an earlier run.
    """

    target: Target
    proposal: Proposal[Any]
    embedding: Embedding
    about: Problem
    usual: Proposal[Any]
    earlier: EarlierRun | None


def build_among_others(
    problem: Problem,
    settings: Settings,
    proposal: Proposal[Any] | None,
    *,
    coordinates: Coordinates,
    anchor: Any,
    resume: Any = None,
    say: Say,
) -> Built:
    """Build the target on all real variables that rows depend on, whichever step method moves them.

    Parameters
    ----------
    problem, settings, proposal, say
        As in `build`.
    coordinates : Coordinates
        Of the problem.
    anchor : None, dict or InferenceData
        Point of expansion, as given by the user.
    resume : None, InferenceData or DataTree
        An earlier run, as given by the user.
    """
    whole = _whole(problem, settings, proposal)
    variables, model = list(whole.variables), problem.model
    run = earlier_run(resume, variables, list(problem.variables), model)
    at = anchor_point(anchor, variables, model)
    if at is not None:
        at = coordinates.inner(at)
    if run is not None:
        run = run.seen_in(coordinates)
    earlier = None if run is None else run.points
    if whole is problem:
        may = May(decide_together=not (coordinates.names or problem.shared))
        target, proposal = build(
            problem, settings, proposal, anchor=at, earlier=earlier, say=say, may=may
        )
        return Built(target, proposal, Embedding(target), problem, proposal, run)
    known, names = whole.prepared.targets, tuple(variable.name for variable in variables)
    if names not in known:  # built once for all step methods that move one variable each
        known[names] = build(whole, settings, anchor=at, earlier=earlier, say=say, may=NOTHING)
    target, usual = known[names]
    embedding = _beside(problem, whole, target, proposal)
    real = embedding.real_approximation
    if proposal is None:
        proposal = ProposalMixture() if target.anchor is not None else RandomWalkProposal()
        if real is not None and not problem.layout.is_continuous:
            proposal = RealOrDiscreteProposal(proposal, real)
        elif real is None:
            proposal = RandomWalkProposal()
    try_proposal(proposal, problem.layout, embedding.approximation, problem.start)
    decided = replace(target, row_free_difference=_no_difference)
    return Built(decided, proposal, embedding, whole, usual, run)


def _whole(problem: Problem, settings: Settings, proposal: Proposal[Any] | None) -> Problem:
    """The problem of all real variables that are moved or that rows depend on, where that helps."""
    model, touched = problem.model, set(problem.touched)
    moved = touched | set(problem.variables) if touched & set(problem.variables) else touched
    variables = [v for v in model.value_vars if v in moved and v.dtype not in discrete_types]
    is_possible = (
        settings.order > 0
        and not settings.description.needs_bound
        and not settings.is_exact
        and bool(variables)
        and variables != list(problem.variables)
        and not any(v.dtype in discrete_types for v in problem.touched)
        and not any(v in problem.likelihood.local_variables for v in moved)
        and not hasattr(proposal, "with_gradients")
        and not hasattr(proposal, "with_surrogate")
        and is_unconstrained(variables, model, proposal)
    )
    return pose(problem.prepared, variables, problem.compile_kwargs) if is_possible else problem


def _beside(
    problem: Problem, whole: Problem, target: Target, proposal: Proposal[Any] | None
) -> SomeVariables:
    return SomeVariables(
        target=target,
        names=[variable.name for variable in whole.variables],
        row_free_difference=problem.row_free_difference,
        layout=problem.layout,
        start=problem.start,
        entries=problem.entries_of(whole.variables),
        places=whole.entries_of(problem.variables),
        is_centered=not isinstance(proposal, UserProposal),
    )


def _no_difference(proposed: NDArray, current: NDArray) -> float:
    """Zero: the row-free part is evaluated for the step method's own variables."""
    return 0.0


def anchor_point(anchor: Any, variables: Sequence, model: pm.Model) -> NDArray | None:
    """The raveled point, in unconstrained space, that a user gives in one of several forms.

    Parameters
    ----------
    anchor : None, dict, InferenceData or DataTree
        Values of the free variables by name, or draws of them, whose mean is taken.
    variables : sequence
        Value variables of the step method.
    model : pymc.Model
        The model they belong to.

    Raises
    ------
    SettingTypeError
        If the anchor has another form.
    SettingError
        If a value is missing, has another shape, or lies outside of the support.
    """
    if anchor is None:
        return None
    if hasattr(anchor, "posterior"):
        draws = draws_of_model("anchor", anchor)
        anchor = {
            rv.name: draws[rv.name].mean(("chain", "draw")).values
            for rv in model.free_RVs
            if rv.name in draws
        }
    names = [rv.name for rv in model.free_RVs]
    if not isinstance(anchor, Mapping):
        raise SettingTypeError(
            f"anchor of type {type(anchor).__name__} is not a point: give a dictionary with values "
            "of the free variables, or what pm.sample returned."
        )
    missing = sorted(set(names) - set(anchor))
    if missing:
        raise SettingError(
            f"anchor lacks {', '.join(map(repr, missing))}: give a value for every free variable."
        )
    shapes = model.eval_rv_shapes()
    for name in names:
        shape, found = tuple(map(int, shapes[name])), np.shape(anchor[name])
        if found != shape:
            raise SettingError(
                f"anchor has a value of shape {found} for {name!r}: give one of shape {shape}."
            )
    overrides = {model[name]: np.asarray(anchor[name]) for name in names}
    point = raveled(
        make_initial_point_fn(model=model, overrides=overrides, jitter_rvs=set())(0), variables
    )
    if not np.isfinite(point).all():
        raise SettingError(
            "anchor is not finite in unconstrained space: give finite values inside of the support "
            "of every free variable."
        )
    return point
