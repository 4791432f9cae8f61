"""Draws of the posterior, as values of a model's variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.setup.model_inputs import refuse_draws_of_bambi

__all__ = ["Draws", "draws_of"]


@dataclass(frozen=True, eq=False)
class Draws:
    """Values of the variables of a model, draw by draw.

    Attributes
    ----------
    posterior : xarray.Dataset
        Source of the values.
    values : list of arrays, each of shape (n_chains * n_draws, ...)
        One for each variable; the draws of the first chain come first.
    """

    posterior: xr.Dataset
    values: list[NDArray]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of chains and of draws per chain."""
        return self.posterior.sizes["chain"], self.posterior.sizes["draw"]

    @property
    def size(self) -> int:
        """Number of draws of all chains."""
        n_chains, n_draws = self.shape
        return n_chains * n_draws

    def point(self, number: int) -> list[NDArray]:
        """Values of one draw."""
        return [value[number] for value in self.values]

    def mean(self) -> list[NDArray]:
        """Means of all draws, rounded where a variable is discrete."""
        means = [value.mean(axis=0) for value in self.values]
        return [
            np.asarray(mean if value.dtype.kind == "f" else np.rint(mean), dtype=value.dtype)
            for mean, value in zip(means, self.values, strict=True)
        ]


def draws_of(idata: Any, variables: Sequence[Variable]) -> Draws:
    """The draws of some variables.

    Parameters
    ----------
    idata : InferenceData or DataTree
        A run with a group ``posterior``.
    variables : sequence of variables
        Value variables whose names and scale are those of the posterior.

    Raises
    ------
    SettingError
        A variable was not stored, or has another shape; or the draws are those of Bambi's ``fit``.
    SettingTypeError
        There is no posterior.
    """
    group = None if isinstance(idata, xr.Dataset) else getattr(idata, "posterior", None)
    if group is None:
        raise SettingTypeError(
            "idata must be an InferenceData or a DataTree with a group 'posterior', not "
            f"{type(idata).__name__}: pass what pm.sample returned."
        )
    posterior = group.to_dataset() if isinstance(group, xr.DataTree) else group
    refuse_draws_of_bambi("idata", posterior)
    missing = [variable.name for variable in variables if variable.name not in posterior]
    if missing:
        raise SettingError(
            f"the posterior has no draws of {', '.join(map(repr, missing))}: sample again without "
            "leaving them out of var_names."
        )
    values = [_values(posterior[variable.name], variable) for variable in variables]
    return Draws(posterior, values)


def _values(draws: xr.DataArray, variable: Variable) -> NDArray:
    values = draws.transpose("chain", "draw", ...).values
    flat = values.reshape(-1, *values.shape[2:])
    expected = variable.type.shape
    if flat.ndim - 1 != len(expected) or any(
        length not in (None, own) for length, own in zip(expected, flat.shape[1:], strict=True)
    ):
        raise SettingError(
            f"draws of {variable.name!r} have shape {flat.shape[1:]} instead of {expected}: pass "
            "the model that was sampled."
        )
    return np.ascontiguousarray(flat, dtype=variable.dtype)
