"""From a model to compiled functions and stored rows."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.decider import Decisions
from pymc_austerity.deciding.sampling import RowFunction, Sampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.deciding.uniform import always_exact, uniform_sampling
from pymc_austerity.errors import AusterityWarning, SettingError
from pymc_austerity.model import (
    RowLikelihood,
    compile_differences,
    row_length_deterministics,
    split_log_density,
    verify,
)
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import RowSource, SharedRows, blocks_of
from pymc_austerity.sequential import Decision
from pymc_austerity.setup.control_variates import PlanRequest, control_variate_plan
from pymc_austerity.setup.model_inputs import checked_generator, checked_point, raveled
from pymc_austerity.setup.setup_progress import Say

__all__ = ["Machinery", "PreparedModel", "assemble", "prepare"]

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
    rng : numpy.random.Generator
        Source of the order of the rows and of what else set-up draws.
    """

    def __init__(
        self, likelihood: RowLikelihood, point: Mapping[str, NDArray], rng: np.random.Generator
    ) -> None:
        self.likelihood = likelihood
        self.point = point
        self.rng = rng
        self._shuffled: SharedRows | None = None

    def shuffled_rows(self) -> SharedRows:
        """The rows in random order, stored once."""
        if self._shuffled is None:
            order = self.rng.permutation(self.likelihood.n_rows)
            self._shuffled = SharedRows(self.likelihood.arrays, order)
        return self._shuffled


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
    point = checked_point(initial_point, model)
    generator = checked_generator(_ORDER_OF_ROWS if rng is None else rng).spawn(1)[0]
    say("cutting the model's graph to rows")
    split = split_log_density(model, likelihood=likelihood, axis=axis, point=point)
    say("verifying the cut")
    verify(split, point, rng=generator)
    for name in row_length_deterministics(split):
        warnings.warn(
            f"Deterministic {name!r} has one entry per row ({split.n_rows:,}), which PyMC computes "
            "and stores at every draw: leave it out with pm.sample(var_names=[...]) and compute it "
            "afterwards with pm.compute_deterministics.",
            AusterityWarning,
            stacklevel=4,
        )
    return PreparedModel(split, point, generator)


@dataclass(frozen=True)
class Machinery:
    """What a step method needs to decide.

    Attributes
    ----------
    exact_difference : callable
        ``f(proposed, current)``: difference of the exact part, nats.
    sampling : Sampling
        Source of samples of the row differences, or of their residuals about the anchor.
    row_function, source
        What they are made of, for passes over all rows.
    anchor : Anchor or None
        Where the row differences are expanded; None if they are not.
    summary : str
        What was chosen and why, in one line.
    approximation : GaussianApproximation or None
        Normal approximation of the posterior; None without an anchor.
    """

    exact_difference: Callable[..., Any]
    sampling: Sampling
    row_function: RowFunction
    source: RowSource
    anchor: Anchor | None
    summary: str
    approximation: GaussianApproximation | None

    def decide(
        self,
        decisions: Decisions,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        rng: np.random.Generator,
    ) -> Decision:
        """Accept or reject a proposal; `log_ratio` is that of the proposal densities, nats."""
        log_ratio += float(self.exact_difference(proposed, current))
        if not math.isfinite(log_ratio):
            return Decision(False, 0, 0, 0.0, math.nan, True)
        if self.anchor is not None:
            log_ratio += self.anchor.expansion(proposed, current)
        return decisions.metropolis(self.sampling, proposed, current, log_ratio, rng)

    def is_possible(self, candidate: NDArray, start: NDArray) -> bool:
        """Whether the log-density at a point is finite as it is at the start; reads all rows."""
        if not np.isfinite(self.exact_difference(candidate, start)):
            return False
        return all(
            np.isfinite(self.row_function(candidate, start, *block)).all()
            for block in blocks_of(self.source)
        )


def assemble(
    prepared: PreparedModel,
    variables: Sequence,
    shared: Mapping,
    settings: Settings,
    *,
    anchor: NDArray | None,
    unconstrained: bool = True,
    compile_kwargs: dict[str, Any] | None,
    say: Say = str,
) -> Machinery:
    """Compile what the variables of one step method need, and choose how rows are sampled.

    Control variates are for variables that are `unconstrained`: free to move in every direction.
    """
    likelihood, point = prepared.likelihood, prepared.point
    _refuse_local(likelihood, variables)
    say("compiling")
    compiled = compile_differences(
        likelihood, variables, shared, point, compile_kwargs=compile_kwargs
    )
    start = raveled(point, variables)
    compiled.exact(start, start)  # what is called once is ready when the chains start
    reason = ""
    if settings.order and not always_exact(settings, likelihood.n_rows):
        request = PlanRequest(likelihood, variables, shared, point, start, compiled.rows, settings)
        plan, reason = None, "its variables cannot move in every direction"
        if unconstrained:
            plan, reason = control_variate_plan(
                request, rng=prepared.rng, anchor=anchor, compile_kwargs=compile_kwargs, say=say
            )
        if plan is not None:
            approximation = GaussianApproximation(plan.anchor.point, plan.anchor.root)
            return Machinery(compiled.exact, *plan, approximation)
        if settings.control_variates != "auto":
            raise SettingError(
                f"control_variates={settings.control_variates!r} cannot be had because {reason}: "
                "use control_variates='auto' to go without where need be."
            )
    say("storing the rows")
    source = prepared.shuffled_rows()
    compiled.rows(start, start, *source.window(0, 1))
    sampling, summary = uniform_sampling(compiled.rows, source, settings)
    summary += f"; no control variates because {reason}" if reason else ""
    return Machinery(compiled.exact, sampling, compiled.rows, source, None, summary, None)


def _refuse_local(likelihood: RowLikelihood, variables: Sequence) -> None:
    local = [variable for variable in variables if variable in likelihood.local_variables]
    if not local:
        return
    model = likelihood.model
    names = [model.values_to_rvs[variable].name for variable in local]
    others = [rv.name for rv in model.free_RVs if rv.name not in names]
    raise SettingError(
        f"{', '.join(map(repr, names))} has one entry per row, so that a step on it cannot be made "
        f"cheap by reading fewer rows: leave it to another step method with "
        f"AusterityMH(vars={others!r})."
    )
