"""Refusals of proposals that cannot move the variables, or that need a test."""

from collections.abc import Sequence
from typing import Any

import pymc as pm

from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import SettingError
from pymc_austerity.model import random_variable_of
from pymc_austerity.proposals import Proposal, UserProposal
from pymc_austerity.setup.problem import Problem


def refuse_unsuitable(variables: Sequence, model: pm.Model, proposal: Proposal[Any] | None) -> None:
    """Refuse steps that are certain to leave the support of a variable.

    Parameters
    ----------
    variables : sequence
        Value variables of the step method.
    model : pymc.Model
        The model they belong to.
    proposal : Proposal, optional
        The user's. A function is trusted.

    Raises
    ------
    SettingError
        The message names the variable and the proposal to use.
    """
    if (check_model := getattr(proposal, "check_model", None)) is not None:
        check_model(model)
    if isinstance(proposal, UserProposal) or not getattr(proposal, "unconstrained", True):
        return
    for random_variable in (model.values_to_rvs[variable] for variable in variables):
        if instead := special_moves(random_variable):
            name = random_variable.name
            raise SettingError(f"{name!r} has {instead.format(name=name)}")


def refuse_local(problem: Problem) -> None:
    """Refuse variables with one entry per row."""
    rowwise = problem.likelihood.local_variables
    local = [variable for variable in problem.variables if variable in rowwise]
    if not local:
        return
    model = problem.model
    names = [model.values_to_rvs[variable].name for variable in local]
    others = [rv.name for rv in model.free_RVs if rv.name not in names]
    discrete = [model.values_to_rvs[v].name for v in local if v.dtype.startswith(("int", "uint"))]
    chosen = discrete or names
    has = "has" if len(chosen) == 1 else "have"
    remedy = "sample the model with NUTS"
    if discrete:
        has = f"{'is' if len(chosen) == 1 else 'are'} discrete and {has}"
        remedy = "sum it out of the likelihood, as pm.Mixture does"
    raise SettingError(
        f"{', '.join(map(repr, chosen))} {has} one entry per row, so that a step on it cannot be "
        f"made cheap by reading fewer rows: {remedy}, or leave it to another step method with "
        f"AusterityMH(vars={others!r})."
    )


def refuse_left_to_the_example(problem: Problem) -> None:
    """With rows in sources, refuse to leave variables of rows to methods that read the example."""
    others = [v for v in problem.touched if v in problem.shared]
    if problem.prepared.from_sources is None or not others:
        return
    names = ", ".join(repr(random_variable_of(v, problem.model).name) for v in others)
    raise SettingError(
        f"vars= leaves out {names}, which the rows depend on and which would be moved on the rows "
        "of the example: leave vars= out; blocked=False moves variables one by one."
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
    """Whether a normal approximation in the coordinates of the variables is possible.

    Parameters
    ----------
    variables : sequence
        Value variables of the step method.
    model : pymc.Model
        The model they belong to.
    proposal : Proposal, optional
        What the user gave.
    """
    random_variables = [random_variable_of(variable, model) for variable in variables]
    special = any(map(special_moves, random_variables))
    return getattr(proposal, "unconstrained", True) and not special


def special_moves(random_variable: Any) -> str:
    """What to use instead, if ordinary moves would leave the support of a distribution."""
    return getattr(random_variable.owner.op, "special_moves", "")
