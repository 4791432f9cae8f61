"""Check that variables are binary: an update compares one with zero."""

from typing import Any

import pymc as pm

from pymc_austerity._pymc import BernoulliRV
from pymc_austerity.errors import SettingError
from pymc_austerity.setup.model_inputs import checked_variables

__all__ = ["checked_binary_variables"]


def checked_binary_variables(variables: Any, model: pm.Model) -> list:
    """The value variables of the given Bernoulli variables; by default, of all of them.

    Raises
    ------
    SettingError
        There is none, or a variable has another distribution.
    """
    binary = [rv for rv in model.free_RVs if _is_binary(rv)]
    if variables is None and not binary:
        raise SettingError(
            "the model has no free Bernoulli variable, so there is nothing for AusterityGibbs to "
            "update: use AusterityMH for other variables."
        )
    chosen = checked_variables(binary if variables is None else variables, model)
    for value in chosen:
        random_variable = model.values_to_rvs[value]
        if random_variable not in binary:
            raise SettingError(
                f"{random_variable.name!r} is not a Bernoulli variable, so AusterityGibbs cannot "
                "compare its two values: leave it to another step method, for example with "
                f"vars={[rv.name for rv in binary]!r}."
            )
    return chosen


def _is_binary(random_variable: Any) -> bool:
    node = random_variable.owner
    return node is not None and isinstance(node.op, BernoulliRV)
