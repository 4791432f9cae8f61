"""Proposals that cannot move the variables at hand, or cannot go without a test."""

from collections.abc import Sequence
from typing import Any

import pymc as pm

from pymc_austerity.deciding.settings import Settings
from pymc_austerity.distributions import has_point_masses, on_manifold
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import Proposal, ReversibleJumpProposal, UserProposal
from pymc_austerity.setup.problem import Problem

__all__ = ["is_unconstrained", "refuse_local", "refuse_uncorrected", "refuse_unsuitable"]


def refuse_unsuitable(variables: Sequence, model: pm.Model, proposal: Proposal[Any] | None) -> None:
    """Refuse steps that would leave the support of a variable for certain.

    Parameters
    ----------
    variables : sequence
        Value variables of the step method.
    model : pymc.Model
        The model they belong to.
    proposal : Proposal, optional
        What the user gave. A function of their own is trusted.

    Raises
    ------
    SettingError
        Names the variable and the proposal to use.
    """
    if isinstance(proposal, ReversibleJumpProposal):
        _refuse_without_point_masses(model, proposal)
    if isinstance(proposal, UserProposal) or not getattr(proposal, "unconstrained", True):
        return
    for random_variable in (model.values_to_rvs[variable] for variable in variables):
        name = random_variable.name
        if on_manifold(random_variable):
            raise SettingError(
                f"{name!r} has orthonormal columns, which the default proposals would not keep: "
                f"use AusterityMH(vars=[{name!r}], proposal=StiefelProposal())."
            )
        if has_point_masses(random_variable):
            raise SettingError(
                f"{name!r} has coefficients that are exactly zero, which the default proposals "
                "would not keep: move it together with its indicators, with "
                f"AusterityMH(proposal=ReversibleJumpProposal({name!r}, ...))."
            )


def refuse_local(problem: Problem) -> None:
    """Refuse variables with one entry per row."""
    rowwise = problem.likelihood.local_variables
    local = [variable for variable in problem.variables if variable in rowwise]
    if not local:
        return
    model = problem.model
    names = [model.values_to_rvs[variable].name for variable in local]
    others = [rv.name for rv in model.free_RVs if rv.name not in names]
    raise SettingError(
        f"{', '.join(map(repr, names))} has one entry per row, so that a step on it cannot be made "
        f"cheap by reading fewer rows: leave it to another step method with "
        f"AusterityMH(vars={others!r})."
    )


def refuse_uncorrected(settings: Settings, proposal: Proposal[Any] | None) -> None:
    """Refuse to accept everything from a proposal that does not follow gradients."""
    if settings.test is None and not hasattr(proposal, "with_gradients"):
        names = {type(None): "the default proposal", UserProposal: "a function"}
        name = names.get(type(proposal), type(proposal).__name__)
        raise SettingError(
            f"test=None accepts every proposal, and {name} does not follow the posterior by "
            "itself: give proposal=LangevinProposal(step_size=...), or leave test out."
        )


def is_unconstrained(variables: Sequence, model: pm.Model, proposal: Proposal[Any] | None) -> bool:
    """Whether a normal approximation in the coordinates of the variables makes sense at all.

    Parameters
    ----------
    variables : sequence
        Value variables of the step method.
    model : pymc.Model
        The model they belong to.
    proposal : Proposal, optional
        What the user gave.
    """
    random_variables = [model.values_to_rvs[variable] for variable in variables]
    special = any(on_manifold(rv) or has_point_masses(rv) for rv in random_variables)
    return getattr(proposal, "unconstrained", True) and not special


def _refuse_without_point_masses(model: pm.Model, proposal: ReversibleJumpProposal) -> None:
    """An ordinary density would be paid for coefficients that are not there."""
    named = {rv.name: rv for rv in model.free_RVs}
    coefficients = named.get(proposal.coefficients)
    if coefficients is not None and not has_point_masses(coefficients):
        raise SettingError(
            f"{coefficients.name!r} has no point mass at zero, so that models of different sizes "
            f"cannot be compared: give it a SpikeAndSlab prior, "
            f"pymc_austerity.distributions.SpikeAndSlab({coefficients.name!r}, "
            f"{proposal.inclusion}, slab)."
        )
