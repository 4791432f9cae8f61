"""Set-up of a step method whose decisions read few rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm

from pymc_austerity._pymc import CompoundStep
from pymc_austerity.arguments import unless_auto
from pymc_austerity.deciding.exact import PoissonSampling, decider_of
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.setup.build import Built, build_among_others
from pymc_austerity.setup.compiled_target import decisions_for_python
from pymc_austerity.setup.coordinates import best_coordinates
from pymc_austerity.setup.earlier_run import learn
from pymc_austerity.setup.normality import check_normality, spread_of_residuals, warn_if_loose
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.problem import pose
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.support import (
    refuse_left_to_the_example,
    refuse_uncorrected,
    refuse_unsuitable,
)
from pymc_austerity.step_methods.draws_ahead import compile_now, is_independent
from pymc_austerity.step_methods.metropolis import MetropolisStep
from pymc_austerity.step_methods.request import Request


class PerVariable(CompoundStep):
    """One step method for each variable, on shared rows."""

    def explain(self) -> str:
        """What each of them is, in plain language."""
        return "\n".join(step.explain() for step in self.methods)

    def end_setup(self, stages: Mapping[str, float]) -> None:
        """End set-up of each of them, which had the same stages."""
        for step in self.methods:
            step.end_setup(stages)
        self.stats_dtypes = [types for step in self.methods for types in step.stats_dtypes]


class FewRowsStep(MetropolisStep, shown_as="AusterityMH"):
    """What `AusterityMH` is where decisions read few rows.

    Parameters
    ----------
    vars : sequence of variables
        Value variables.
    request : Request
        What the user asks.
    model : pymc.Model
        The model.
    say : callable
        Shows the stage of set-up.
    rng : int or numpy.random.Generator, optional
        Source of draws outside ``pm.sample``.
    blocked : bool
        Whether PyMC makes a single step method of several variables.
    prepared : PreparedModel, optional
        The model, if it is prepared already.
    is_candidate : bool
        Whether another step method may still be chosen in its place.
    """

    name = "austerity_mh"

    @classmethod
    def made(
        cls,
        variables: Sequence,
        request: Request,
        model: pm.Model,
        say: Say,
        prepared: PreparedModel | None = None,
    ) -> Any:
        """The step method, or one for each variable, which share the rows."""
        its: Any = {"request": request, "model": model, "say": say, "rng": request.rng}
        if request.options.blocked or len(variables) == 1:
            return cls(variables, **its, prepared=prepared)
        prepared = request.prepared(model, say)
        compile_kwargs = dict(request.options.compile_kwargs or {})
        refuse_left_to_the_example(pose(prepared, variables, compile_kwargs))
        return PerVariable(cls(variables, **its, blocked=False, prepared=prepared).methods)

    def __init__(
        self,
        vars: Sequence,
        *,
        request: Request,
        model: pm.Model,
        say: Say,
        rng: Any = None,
        blocked: bool = True,
        prepared: PreparedModel | None = None,
        is_candidate: bool = False,
    ) -> None:
        settings = replace(request.settings, only_with_surrogate=is_candidate)
        options, proposal = request.options, request.own_proposal
        self.steps_per_draw = request.steps_per_draw
        self.adapts = options.tune and settings.test is not None  # else nothing is learned
        refuse_unsuitable(vars, model, proposal)
        refuse_uncorrected(settings, proposal)
        prepared = prepared or request.prepared(model, say)
        posed = pose(prepared, vars, dict(options.compile_kwargs or {}))
        if blocked:
            refuse_left_to_the_example(posed)
        problem, self.coordinates = best_coordinates(posed, settings, proposal)
        settings.try_bound(problem.start)
        built = build_among_others(
            problem,
            settings,
            proposal,
            coordinates=self.coordinates,
            anchor=unless_auto("anchor", options.anchor),
            resume=request.resume,
            say=say,
        )
        self.target, self.proposal, self.embedding = built[:3]
        self._begin(problem, blocked=blocked, rng=rng)
        say("trying decisions")
        self._try(built, settings, prepared.rng)
        self.python_needed = self._why_python()
        if not is_candidate:
            self._compile(say)
        prepared.end_setup()
        self._describe(
            problem,
            structure=built.about.structure,
            compiled_as=self.target.compiled_as,
            centered=self.coordinates.names,
            blocks=built.about.blocks,
        )

    @cached_property
    def spread_of_residuals(self) -> float:
        """See `pymc_austerity.setup.normality.spread_of_residuals`; all rows are read once."""
        return spread_of_residuals(self.target, self.proposal)

    def _compile(self, say: Say) -> None:
        if not self.python_needed:
            say("compiling transitions")
            compile_now(self.target, self.decider, self.proposal)

    def _try(self, built: Built, settings: Settings, rng: np.random.Generator) -> None:
        """Choose the test, tune it on an earlier run if there is one, and check its assumption."""
        target, moving_support = self.target, built.about.moving_support
        if isinstance(target.sampling, PoissonSampling) and not settings.decides_exactly:
            settings = replace(settings, test="exact", max_error=None)
        elif target.anchor is None:
            settings = settings.without_control_variates(by_single_rows=bool(moving_support))
        self.settings, self.decider = settings, decider_of(settings, target)
        self.decider.compiled = decisions_for_python(target, self.proposal, self.decider)
        self.learnt = None
        if built.earlier is not None:
            its = self.proposal, self.decider, self.embedding, rng
            is_tuned = not is_independent(target, self.proposal)
            self.learnt = learn(built.earlier, *its, is_tuned=is_tuned)
        warn_if_loose(self.decider)
        self.normality = check_normality(
            target, built.usual, settings, moving_support=moving_support, rng=rng
        )
