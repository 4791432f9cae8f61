"""Which variables have point masses at zero, which a random walk cannot reach."""

from typing import Any

import pymc as pm

from pymc_austerity.errors import SettingError
from pymc_austerity.variable_selection.reversible_jump import ReversibleJumpProposal
from pymc_austerity.variable_selection.spike_and_slab import SpikeAndSlabRV

__all__ = ["has_point_masses", "refuse_ordinary_moves", "refuse_without_point_masses"]


def has_point_masses(random_variable: Any) -> bool:
    """Whether a variable of a model is exactly zero with positive probability.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_austerity.variable_selection import SpikeAndSlab, has_point_masses
    >>> has_point_masses(SpikeAndSlab.dist([0, 1], pm.Normal.dist()))
    True
    """
    return isinstance(random_variable.owner.op, SpikeAndSlabRV)


def refuse_ordinary_moves(random_variable: Any) -> None:
    """Reject moves that would certainly leave the support of a variable.

    Raises
    ------
    SettingError
        Names the variable and the proposal to use.
    """
    if has_point_masses(random_variable):
        name = random_variable.name
        raise SettingError(
            f"{name!r} has coefficients that are exactly zero, which the default proposals "
            "would not keep: move it together with its indicators, with "
            f"AusterityMH(proposal=ReversibleJumpProposal({name!r}, ...))."
        )


def refuse_without_point_masses(model: pm.Model, proposal: Any) -> None:
    """Reject births and deaths of coefficients that have an ordinary density.

    The density would count coefficients that are not in the model.

    Raises
    ------
    SettingError
        Names the variable and the prior to use.
    """
    if not isinstance(proposal, ReversibleJumpProposal):
        return
    named = {rv.name: rv for rv in model.free_RVs}
    coefficients = named.get(proposal.coefficients)
    if coefficients is not None and not has_point_masses(coefficients):
        raise SettingError(
            f"{coefficients.name!r} has no point mass at zero, so that models of different sizes "
            f"cannot be compared: give it a SpikeAndSlab prior, "
            f"pymc_austerity.variable_selection.SpikeAndSlab({coefficients.name!r}, "
            f"{proposal.inclusion}, slab)."
        )
