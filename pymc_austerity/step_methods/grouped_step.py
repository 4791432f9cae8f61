"""Sweeps over the levels of a model with groups, behind PyMC's contract."""

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import RaveledVars, StepMethodState, dataclass_state
from pymc_austerity.deciding.stored_rows import rows_named
from pymc_austerity.errors import SettingError
from pymc_austerity.levels import SequentialSettings, SweepState
from pymc_austerity.setup.earlier_run import Learnt, earlier_run, learn_sweeps
from pymc_austerity.setup.levels import (
    BuiltGroups,
    GroupedTarget,
    NoGroupsError,
    build_groups,
)
from pymc_austerity.setup.setup_progress import setup_progress
from pymc_austerity.step_methods.base import SubsamplingStep
from pymc_austerity.step_methods.phase import Phase
from pymc_austerity.step_methods.request import Request
from pymc_austerity.step_methods.statistics import of_draw
from pymc_austerity.step_methods.summary import Words
from pymc_austerity.step_methods.sweep_statistics import of_sweep, statistics_of_blocks
from pymc_austerity.step_methods.sweep_words import cost_in_words, in_words

__all__ = ["GroupedStep"]


@dataclass_state
class GroupedState(StepMethodState):
    """Everything that changes while a chain runs, and fields that must match on resume."""

    phase: Phase
    sweep_state: SweepState
    n_rows: int = field(metadata={"frozen": True})
    data_fingerprint: str = field(metadata={"frozen": True})


_TESTS = {
    False: {
        "test": "exact",
        "acceptance_rule": "poisson",
        "assumption": "bounds",
        "sampling": "PoissonSampling",
    },
    True: {
        "test": "StudentTTest",
        "acceptance_rule": "metropolis",
        "assumption": "normal means",
        "sampling": "UniformSampling",
    },
}
"""Constants of runs without and with sequential tests."""


class GroupedStep(SubsamplingStep):
    """What `GroupedMH` is for a model.

    Parameters
    ----------
    vars : sequence of variables
        Value variables.
    request : Request
        What the user asks.
    model : pymc.Model
        The model.
    built : BuiltGroups, optional
        The moves, if `AusterityMH` has built them.
    """

    name = "grouped_mh"
    public_name = "GroupedMH"
    options_taken = frozenset({"axis", "tune", "steps_per_draw", "initial_point", "compile_kwargs"})
    _state_class = GroupedState
    target: GroupedTarget
    sweep_state: SweepState
    learnt: Learnt | None

    def __init__(
        self,
        vars: Sequence,
        *,
        request: Request,
        model: pm.Model,
        built: BuiltGroups | None = None,
    ) -> None:
        tests = SequentialSettings(_number(request.epsilon), _number(request.audit))
        options = request.options
        self.steps_per_draw = options.steps_per_draw
        self.adapts, self._is_audit_given = options.tune, tests.audit > 0.0
        earlier = earlier_run(request.resume, list(vars), list(vars), model)
        self._is_candidate = built is not None
        if built is None:
            try:
                built = build_groups(
                    model, vars, dict(options.compile_kwargs or {}), request.for_preparing
                )
            except NoGroupsError as error:
                raise SettingError(
                    f"GroupedMH has no moves for this model because {error}: use AusterityMH()."
                ) from None
        self.target, problem = built.target.with_tests(tests), built.problem
        self.stats_dtypes_shapes = statistics_of_blocks(self.target.sweep.blocks)
        self._begin(built.posed, blocked=True, rng=request.rng)
        with setup_progress(self.public_name) as say:
            say("trying sweeps")
            self.learnt = None
            if earlier is not None:
                run = earlier.seen_in(self.target.coordinates)
                with rows_named(self.target.numbers):
                    self.learnt = learn_sweeps(run, self.target.sweep, problem.prepared.rng)
            self._cost = cost_in_words(self.target, self.n_rows)
        self._finish(
            built.started,
            built.posed,
            structure=problem.structure,
            compiled_as=self.target.compiled_as,
            centered=self.target.coordinates.names,
            free=tuple(its.name for its in self.target.coordinates.absorbed),
            blocks=problem.blocks,
        )

    # ------------------------------------------------------------------ one step

    def astep(self, apoint: RaveledVars) -> tuple[RaveledVars, list[dict[str, Any]]]:
        """Sweep over all blocks as often as there are steps in a draw."""
        to = self.target.coordinates
        current = to.inner(apoint.data)
        if self.phase.is_start:
            self.phase = self.phase.begun()
            if np.array_equal(apoint.data, to.start):
                current = self._start()
            else:  # the user chose it
                exact_part = self.target.sweep.posterior.exact_part
                self._refuse_impossible_start(exact_part(current, to.inner(to.start)))
        sweeps = []
        for _ in range(self.steps_per_draw):
            current, statistics = self._sweep(current)
            sweeps.append(statistics)
        return RaveledVars(to.outer(current), apoint.point_map_info), [of_draw(sweeps)]

    def _start(self) -> NDArray:
        if self.learnt is None:
            return self.target.sweep.begin(self.rng)
        return self.learnt.start(self.rng)

    def _sweep(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        tuning = self.tune and self.adapts
        with rows_named(self.target.numbers):
            following, self.sweep_state, uses = self.target.sweep.step(
                current, self.sweep_state, self.rng, tuning=tuning
            )
        epsilon = self.target.sequential.epsilon
        return following, of_sweep(uses, self.n_rows, self.sweep_state, epsilon)

    # ------------------------------------------------------------------ a chain

    def reset_tuning(self) -> None:
        """Forget what was learned."""
        self.tune = True
        learnt = self.learnt
        self.sweep_state = self.target.sweep.init() if learnt is None else learnt.proposal_state

    def stop_tuning(self) -> None:
        """Freeze the random walks."""
        if not self.tune:
            return
        self.tune = False
        if self.adapts:
            self.sweep_state = self.target.sweep.freeze(self.sweep_state)

    # ------------------------------------------------------------------ words

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        return {
            **self._common_constants,
            "epsilon": self.target.sequential.epsilon,
            "max_error": math.nan,
            **_TESTS[self.target.sequential.epsilon > 0.0],
            "proposal": "Sweep",
            "proposal_rows": 0,
            "audit": self.target.sequential.audit if self.target.sequential.epsilon else 0.0,
            "steps_per_draw": self.steps_per_draw,
            "control_variates": 2,
            "normality": "not checked",
            "blocks": ", ".join(self.target.sweep.blocks),
        }

    @property
    def _words(self) -> Words:
        return Words(in_words(self.target, is_audit_given=self._is_audit_given), self._cost)


def _number(value: Any) -> float:
    """An `epsilon` or a share of audits; 0 where `AusterityMH` leaves it to the model."""
    return 0.0 if value == "auto" else float(value)
