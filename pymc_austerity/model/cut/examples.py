"""Variables of a model that hold a few example rows of data that are elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import Cast, Constant, Elemwise, SharedVariable, Variable, is_relabelling
from pymc_austerity.arguments import choice_among
from pymc_austerity.errors import SettingError

__all__ = ["NO_EXAMPLES", "Examples", "array_of"]


@dataclass(frozen=True, eq=False)
class Examples:
    """Data of a model that represent more rows than they have.

    Their values must not matter, because other rows do not share them.

    Attributes
    ----------
    variables : dict of str to variable
        What holds the example rows, by the name that the user gave.
    """

    variables: Mapping[str, Variable]

    def __bool__(self) -> bool:
        return bool(self.variables)

    def name_of(self, variable: Variable) -> str | None:
        """Name of the data that a root of a graph, or of a copy of it, holds; or None."""
        array = array_of(variable)
        if not isinstance(array, np.ndarray):
            return None
        for name, own in self.variables.items():
            if variable is own or _is_same_memory(array, array_of(own)):
                return name
        return None

    @classmethod
    def named(cls, model: pm.Model, names: Sequence[str]) -> "Examples":
        """Find the data of some names.

        Raises
        ------
        SettingError
            Names the one that is neither a ``pm.Data`` nor an observed array.
        """
        found: dict[str, Variable] = {}
        for name in names:
            variable = _holder(model, name)
            for other, known in found.items():
                if known is variable:
                    raise SettingError(
                        f"data= names both {other!r} and {name!r}, which are the same data: leave "
                        "one of them out."
                    )
            found[name] = variable
        return cls(found)


NO_EXAMPLES = Examples({})
"""All data are what they are."""


def array_of(variable: Any) -> Any:
    """What a shared variable or a constant holds, None for others."""
    if isinstance(variable, SharedVariable):
        return variable.get_value(borrow=True)
    return variable.data if isinstance(variable, Constant) else None


def _holder(model: pm.Model, name: str) -> Variable:
    variable = model.named_vars.get(name)
    possible = [v.name for v in (*model.data_vars, *model.observed_RVs)]
    if variable is None:
        raise SettingError(
            f"data= names {name!r}, which the model does not have: {choice_among(name, possible)}."
        )
    holder = variable
    if variable in model.observed_RVs:
        holder = model.rvs_to_values[variable]
        while _is_renamed(holder):
            holder = holder.owner.inputs[0]
    if np.ndim(array_of(holder)) == 0 or name not in possible:
        raise SettingError(
            f"data= names {name!r}, which is neither a pm.Data with rows nor observed as it is: "
            f"{choice_among('', possible)}."
        )
    return holder


def _is_renamed(variable: Variable) -> bool:
    """Whether it is its input with other labels or another dtype."""
    node = variable.owner
    if node is None:
        return False
    is_cast = isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Cast)
    return is_cast or is_relabelling(node.op)


def _is_same_memory(one: NDArray, other: NDArray) -> bool:
    places = (one.__array_interface__["data"][0], other.__array_interface__["data"][0])
    return places[0] == places[1] and one.shape == other.shape and one.dtype == other.dtype
