"""PyMC's contract for all step methods of this package, whatever they propose and decide."""

import inspect
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm

from pymc_austerity._pymc import (
    ArrayStepShared,
    Competence,
    get_random_generator,
)
from pymc_austerity.errors import SettingError, StaleDataError, StorageError
from pymc_austerity.model import explain, row_length_deterministics
from pymc_austerity.setup.problem import Problem
from pymc_austerity.step_methods import progress
from pymc_austerity.step_methods.interrupts import (
    defer_interrupts,
    end_sampling,
    stop_if_interrupted,
)
from pymc_austerity.step_methods.phase import Phase
from pymc_austerity.step_methods.run_info import StatisticsTypes
from pymc_austerity.step_methods.statistics import STATISTICS
from pymc_austerity.step_methods.summary import Words

__all__ = ["SubsamplingStep"]

_log = logging.getLogger("pymc.austerity")


class SubsamplingStep(ArrayStepShared):
    """A step method that was built from rows: its chains, pickle, statistics and descriptions.

    A subclass has ``constants`` (constants of the run), ``_words`` (what was built, in words) and
    ``reset_tuning``, and calls `_begin` at the start and `_finish` at the end of its ``__init__``.
    """

    default_blocked = True
    default_tune_steps = 1_000
    stats_dtypes_shapes = STATISTICS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the arguments of ``__init__``, which PyMC's ``__new__`` hides."""
        super().__init_subclass__(**kwargs)
        _, *arguments = inspect.signature(cls.__init__).parameters.values()
        public = [argument for argument in arguments if not argument.name.startswith("_")]
        cls.__signature__ = inspect.Signature(public)

    def _begin(
        self,
        problem: Problem,
        *,
        blocked: bool,
        rng: Any,
    ) -> None:
        """Tell PyMC which variables are moved, and record what is subsampled."""
        super().__init__(problem.variables, problem.shared, blocked=blocked, rng=rng)
        self.n_rows = problem.likelihood.n_rows
        self.subsampled = problem.likelihood.subsampled
        self.data_fingerprint = problem.prepared.fingerprint
        rows = problem.prepared.from_sources
        self._rows_elsewhere = {} if rows is None else {"data": ", ".join(rows.sources)}
        self.deterministics_by_row = tuple(row_length_deterministics(problem.likelihood))
        self.phase = Phase.TUNING
        self._replaced_data: Callable[[], list[str]] = problem.likelihood.stale
        self._model: pm.Model | None = problem.model
        self._parts_of_model = _parts(problem.model)

    def _finish(self, started: float, problem: Problem, **about_rows: Any) -> None:
        """Record how long set-up took, and log what was built.

        `about_rows` holds other facts about the rows, for `pymc_austerity.model.explain`.
        """
        self.reset_tuning()
        self.setup_seconds = time.perf_counter() - started
        types = {name: kind for name, (kind, _) in self.stats_dtypes_shapes.items()}
        self.stats_dtypes: list[dict] = [StatisticsTypes(types, self.constants)]
        self._explanation = explain(problem.likelihood, problem.variables, **about_rows)
        _log.info(self.summary)

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        raise NotImplementedError

    @property
    def _common_constants(self) -> dict[str, Any]:
        return {
            "sampler": type(self).__name__,
            "n_rows": self.n_rows,
            "subsampled": ", ".join(self.subsampled),
            "setup_seconds": round(self.setup_seconds, 3),
            **self._rows_elsewhere,
        }

    @property
    def _words(self) -> Words:
        """Description of what was built."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """Two lines: what was built and how exact it is, and what it costs."""
        what, cost, _ = self._words
        return (
            f"{type(self).__name__} on {', '.join(self.subsampled)}: {what}\n"
            f"Cost: {cost}; set-up took {self.setup_seconds:.1f} s."
        )

    # ------------------------------------------------------------------ a chain

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Begin a chain (PyMC 6)."""
        self.set_rng(rng)

    def set_rng(self, rng: Any) -> None:
        """Begin a chain (PyMC 5): workers of parallel runs call nothing else before they step."""
        defer_interrupts()
        self._refuse_stale_data()
        self.rng = get_random_generator(rng, copy=False)
        self.phase = Phase.START
        self.reset_tuning()

    def _refuse_impossible_start(self, exact_difference: float) -> None:
        """Reject a start that the user chose and that has zero prior density.

        Parameters
        ----------
        exact_difference : float
            Difference of the exact part between this point and the model's initial point, nats.

        Raises
        ------
        SettingError
            The difference is not finite.
        """
        if not np.isfinite(exact_difference):
            raise SettingError(
                "the log-density of the priors is not finite where this chain starts: give other "
                "initvals to pm.sample."
            )

    def step(self, point: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Take a step, unless the chain was interrupted since the previous one.

        Sampling ends if rows can no longer be read.
        """
        stop_if_interrupted()
        try:
            return super().step(point)
        except StorageError as error:
            end_sampling(error)

    @property
    def tune(self) -> bool:
        """Whether the chain is tuning; PyMC sets it."""
        return self.phase.is_tuning

    @tune.setter
    def tune(self, tuning: bool) -> None:
        self.phase = self.phase.with_tuning(tuning)

    def reset_tuning(self) -> None:
        """Forget what was learned."""
        raise NotImplementedError

    def _refuse_stale_data(self) -> None:
        replaced = self._replaced_data()
        if replaced:
            name = type(self).__name__
            raise StaleDataError(
                f"{', '.join(map(repr, replaced))} was changed after this {name} "
                f"had read it: construct a new {name} for the new data."
            )

    def refuse_other_model(self, model: pm.Model) -> None:
        """Reject a model that this step method was not made for, or that has changed since.

        Raises
        ------
        SettingError
            Says what to do.
        """
        name = type(self).__name__
        if self._model is None:  # a copy, from another process
            return
        if model is not self._model:
            raise SettingError(
                f"this {name} was constructed for another model than the one that is sampled: "
                f"construct a new {name} inside of `with model:`."
            )
        changed = sorted(_parts(model) ^ self._parts_of_model)
        if changed:
            raise SettingError(
                f"{', '.join(map(repr, changed))} was added to the model or removed after this "
                f"{name} was constructed: construct a new {name}."
            )

    # ------------------------------------------------------------------ words

    def explain(self) -> str:
        """What is subsampled, what is evaluated in full, and why, in plain language.

        Returns
        -------
        str
            Some lines of text.
        """
        return "\n".join([self.summary, *self._words.details, self._explanation])

    def __repr__(self) -> str:
        return f"<{self.summary.splitlines()[0]}>"

    # ------------------------------------------------------------------ PyMC's contract

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Pickle what was built, not how: the path of the rows, and no model."""
        self._refuse_stale_data()
        return _rebuild, (type(self), self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_BlockedStep__newargs", None)
        state["_replaced_data"] = list  # nobody can change the data of another process
        state["_model"] = None
        return state

    @staticmethod
    def competence(var: Any, has_grad: bool = False) -> Competence:
        """Never selected automatically: users must request it."""
        return Competence.INCOMPATIBLE

    @staticmethod
    def _progressbar_config(n_chains: int = 1) -> tuple:
        defer_interrupts()  # PyMC asks once, before the first draw, where the draws are collected
        return progress.columns(n_chains)

    @staticmethod
    def _make_progressbar_update_functions() -> tuple:
        return (progress.running_averages(),)


def _parts(model: pm.Model) -> frozenset[str]:
    """Names of the parts of the log-density."""
    return frozenset(part.name for part in [*model.basic_RVs, *model.potentials])


def _rebuild(cls: type, state: dict[str, Any]) -> Any:
    step: Any = object.__new__(cls)
    step.__dict__.update(state)
    return step
