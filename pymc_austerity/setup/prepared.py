"""A model that was split into an exact part and rows, and verified."""

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.errors import AusterityWarning
from pymc_austerity.model import (
    RowLikelihood,
    Verified,
    row_length_deterministics,
    split_log_density,
    verify,
)
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.garbage import collection_paused
from pymc_austerity.setup.model_inputs import checked_generator, checked_point
from pymc_austerity.setup.setup_progress import Say

__all__ = ["PreparedModel", "chosen", "prepare"]

_ORDER_OF_ROWS = 20_140_621
"""Seed of the order in which rows are stored where no ``rng`` is given: the results of
``pm.sample`` then depend on its ``random_seed`` alone."""


class PreparedModel:
    """A model that was split and verified; several step methods can share it and its rows.

    Attributes
    ----------
    likelihood : RowLikelihood
        Exact part and row part of the log-density.
    point : dict
        Point at which it was verified.
    verified : Verified
        Its parts in NumPy.
    rng : numpy.random.Generator
        Source of the order of the rows and of what else set-up draws.
    targets : dict
        What was built from it, by the names of the variables, for step methods with equal settings.
    problems : dict
        The problems that were posed, by the names of the variables.
    seconds : float
        What preparing took.
    """

    def __init__(
        self,
        likelihood: RowLikelihood,
        point: Mapping[str, NDArray],
        verified: Verified,
        rng: np.random.Generator,
        seconds: float = 0.0,
    ) -> None:
        self.likelihood = likelihood
        self.point = point
        self.verified = verified
        self.rng = rng
        self.seconds = seconds
        self.targets: dict[tuple[str, ...], Any] = {}
        self.problems: dict[tuple[str, ...], Any] = {}
        self._shuffled: SharedRows | None = None

    def shuffled_rows(self) -> SharedRows:
        """The rows in random order, stored once."""
        if self._shuffled is None:
            order = self.rng.permutation(self.likelihood.n_rows)
            self._shuffled = SharedRows(self.likelihood.arrays, order)
        return self._shuffled


def chosen(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings of a step method that `prepare` takes."""
    names = ("likelihood", "axis", "rng", "initial_point")
    return {name: settings[name] for name in names if name in settings}


@collection_paused()
def prepare(
    model: pm.Model,
    *,
    likelihood: Sequence[str] | None = None,
    axis: int = 0,
    initial_point: Mapping[str, NDArray] | None = None,
    rng: Any = None,
    say: Say = str,
) -> PreparedModel:
    """Split the log-density of a model and verify the split."""
    started, point = time.perf_counter(), checked_point(initial_point, model)
    generator = checked_generator(_ORDER_OF_ROWS if rng is None else rng).spawn(1)[0]
    say("cutting the model's graph to rows")
    split = split_log_density(model, likelihood=likelihood, axis=axis, point=point)
    say("verifying the cut")
    verified = verify(split, point, rng=generator)
    for name in row_length_deterministics(split):
        warnings.warn(
            f"Deterministic {name!r} has one entry per row ({split.n_rows:,}), which PyMC computes "
            "and stores at every draw: leave it out with pm.sample(var_names=[...]) and compute it "
            "afterwards with pm.compute_deterministics.",
            AusterityWarning,
            stacklevel=4,
        )
    return PreparedModel(split, point, verified, generator, time.perf_counter() - started)
