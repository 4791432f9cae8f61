"""From a model to rows in shared memory and compiled functions."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import get_random_generator
from pymc_austerity.errors import AusterityWarning, SettingError
from pymc_austerity.likelihood import (
    RowLikelihood,
    compile_differences,
    row_length_deterministics,
    split_log_density,
    verify,
)
from pymc_austerity.rows import SharedRows

__all__ = ["PreparedModel", "compile_for", "prepare"]

_ORDER_OF_ROWS = 20_140_621
"""Seed of the order in which rows are stored where no ``rng`` is given: the results of
``pm.sample`` then depend on its ``random_seed`` alone."""


@dataclass(frozen=True)
class PreparedModel:
    """A model that was split, verified and stored; several step methods can share it.

    Attributes
    ----------
    likelihood : RowLikelihood
        Exact part and row part of the log-density.
    rows : SharedRows
        Data of the row part, in random order.
    seconds : float
        Time that took.
    """

    likelihood: RowLikelihood
    rows: SharedRows
    seconds: float


def prepare(
    model: pm.Model,
    *,
    likelihood: Sequence[str] | None = None,
    axis: int = 0,
    initial_point: Mapping[str, NDArray] | None = None,
    rng: Any = None,
) -> PreparedModel:
    """Split the log-density of a model, verify the split, and store the rows in random order."""
    started = time.perf_counter()
    point = initial_point or model.initial_point()
    generator = get_random_generator(_ORDER_OF_ROWS if rng is None else rng).spawn(1)[0]
    split = split_log_density(model, likelihood=likelihood, axis=axis, point=point)
    verify(split, point, rng=generator)
    for name in row_length_deterministics(split):
        warnings.warn(
            f"Deterministic {name!r} has one entry per row ({split.n_rows:,}), which PyMC computes "
            "and stores at every draw: leave it out with pm.sample(var_names=[...]) and compute it "
            "afterwards with pm.compute_deterministics.",
            AusterityWarning,
            stacklevel=4,
        )
    rows = SharedRows([leaf.array for leaf in split.leaves], generator.permutation(split.n_rows))
    return PreparedModel(split, rows, time.perf_counter() - started)


def compile_for(
    prepared: PreparedModel,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    compile_kwargs: dict[str, Any] | None,
) -> tuple[Callable[..., NDArray], Callable[..., Any]]:
    """Compiled row differences and exact difference for the variables of one step method."""
    local = [variable for variable in variables if variable in prepared.likelihood.local_variables]
    if local:
        rvs = [prepared.likelihood.model.values_to_rvs[variable].name for variable in local]
        others = [rv.name for rv in prepared.likelihood.model.free_RVs if rv.name not in rvs]
        raise SettingError(
            f"{', '.join(map(repr, rvs))} has one entry per row, so that a step on it cannot be "
            f"made cheap by reading fewer rows: leave it to another step method with "
            f"AusterityMH(vars={others!r})."
        )
    compiled = compile_differences(
        prepared.likelihood, variables, shared, point, compile_kwargs=compile_kwargs
    )
    return compiled.rows, compiled.exact
