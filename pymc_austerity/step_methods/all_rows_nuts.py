"""PyMC's own samplers, where reading few rows does not help."""

import logging
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ChainsToCome,
    CircularTransform,
    CompoundStep,
    QuadPotentialDiagAdapt,
    RaveledVars,
    assign_step_methods,
    discrete_types,
    instantiate_steppers,
    set_first_mean,
    set_target_acceptance,
    starts_of_nuts,
    tune_steps_alone,
    underivable,
)
from pymc_austerity.control_variates import heaviest_modes
from pymc_austerity.errors import SettingError, warn_user
from pymc_austerity.model import refuse_faulty, refuse_not_finite
from pymc_austerity.model.predictors.structure import PointMap
from pymc_austerity.model.rewritten import counterpart, on_full_data
from pymc_austerity.setup.control_variates import several_modes
from pymc_austerity.setup.earlier_run import EarlierRun
from pymc_austerity.step_methods.austerity_step import AusterityStep
from pymc_austerity.step_methods.interrupts import defer_interrupts, restore_interrupts
from pymc_austerity.step_methods.summary import StatisticsTypes, Words
from pymc_austerity.time_limit import end_if_late, within

_log = logging.getLogger("pymc.austerity")

_INIT = "jitter+adapt_diag"
_LATE_SETTINGS = {"target_accept": 0.8, "max_treedepth": 10, "early_max_treedepth": 8}
"""Settings of NUTS that it can be given after it was constructed, and PyMC's defaults."""
_MOST_ENTRIES = 30
"""Of a point, in which other modes are searched for."""
_SMALL_STEP = 1e-5
"""Of differences of gradients, relative to an entry where that is larger than 1."""
_SEED = 20_140_622
_RETRIES = 10
"""Jittered starts that are tried, as in ``pm.sample``."""
_LEARNS, _WEIGHT = 200, 50
"""Transitions that tune steps on an earlier run; draws that its metric counts as in new chains."""


def on_all_rows(
    variables: Sequence, model: pm.Model, settings: dict[str, Any]
) -> "AllRowsNUTS | PyMCSteps":
    """The step methods that ``pm.sample()`` would use, with the cost of a draw.

    NUTS for the variables with a gradient; ``pm.sample`` gives the others to other step methods.

    Parameters
    ----------
    variables : sequence
        Value variables.
    model : pymc.Model
        The model.
    settings : dict
        ``rng``, ``compile_kwargs``, ``point``, the model's initial point, and ``rows``, those of
        each term of its likelihood.
    """
    smooth = [variable for variable in variables if variable.dtype not in discrete_types]
    try:
        step: Any = AllRowsNUTS(smooth, model=model, **settings) if smooth else None
    except underivable:
        smooth = [variable for variable in smooth if _has_gradient(variable, model)]
        step = AllRowsNUTS(smooth, model=model, **settings) if smooth else None
    if step is None:
        return PyMCSteps(variables, model, settings["point"], settings["rows"])
    return step


def _has_gradient(variable: Any, model: pm.Model) -> bool:
    try:
        model.dlogp([model.values_to_rvs[variable]])
    except underivable:
        return False
    return True


class _OnAllRows(AusterityStep):
    """Descriptions of a run of PyMC's own step methods.

    Attributes
    ----------
    reason : str
        Why few rows do not help, as a clause.
    """

    is_chosen_by_default = True
    reason: str
    vars: list

    def _describe(self, model: pm.Model, rows: Mapping[str, int]) -> None:
        self.n_rows, self.subsampled = sum(rows.values()), tuple(rows)
        self._is_for(model)
        others = [rv.name for rv in model.free_RVs if model.rvs_to_values[rv] not in self.vars]
        self._others, self._explanation = ", ".join(others), ""
        if others:
            self._explanation = f"Left to other step methods of PyMC: {self._others}."

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Begin a chain (PyMC 6); in PyMC 5 only the generator is set."""
        its: Any = super()
        if hasattr(its, "setup_chain"):
            self._begin_anew()
            its.setup_chain(rng, tune, draws)
        else:
            self.set_rng(rng)

    def set_rng(self, rng: Any) -> None:
        """Begin a chain (PyMC 5)."""
        self._begin_anew()
        super().set_rng(rng)  # type: ignore[misc]

    def _begin_anew(self) -> None:
        """Forget chains before, which PyMC does not see to in the processes of a parallel run."""
        defer_interrupts()
        self.reset_tuning()  # type: ignore[attr-defined]

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        return {
            **self._common_constants,
            "acceptance_rule": "none",
            "reason": self.reason,
        }

    @property
    def _all_rows(self) -> str:
        """What is evaluated; potentials have no rows that are known."""
        return f"all {self.n_rows:,} rows" if self.n_rows else "the whole log-density"

    @property
    def _who(self) -> str:
        return f"AusterityMH on {', '.join(self.subsampled) or 'no observed variable'}"


class AllRowsNUTS(_OnAllRows, pm.NUTS):
    """PyMC's NUTS, which ``AusterityMH()`` returns where few rows do not help.

    Chains start and adapt as in ``pm.sample()``: jittered uniformly within (-1, 1) of the initial
    point, with a diagonal mass matrix. Where it moves all variables, its draws are those of
    ``pm.sample(init="jitter+adapt_diag")`` with the same seed.

    Parameters
    ----------
    vars : sequence of variables
        Continuous value variables.
    model : pymc.Model
        The model.
    point : dict
        The model's initial point.
    rows : dict of str to int
        Rows of each term of its likelihood.
    rng : int or numpy.random.Generator, optional
        Source of draws outside ``pm.sample``.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``.

    Attributes
    ----------
    start : array, shape (d,)
        The initial point.
    learnt : EarlierRun or None
        The run that chains continue.

    Notes
    -----
    In addition to the statistics of `pymc.NUTS`, ``sample_stats`` contains ``n_rows_used``: rows
    times gradients. ``pm.Minibatch`` is undone.
    """

    stats_dtypes_shapes = pm.NUTS.stats_dtypes_shapes | {
        "n_rows_used": (np.int64, []),
        "data_fraction": (np.float64, []),
    }

    def __init__(
        self,
        vars: Sequence,
        *,
        model: pm.Model,
        point: dict[str, NDArray],
        rows: Mapping[str, int],
        rng: Any = None,
        compile_kwargs: dict[str, Any] | None = None,
        blocked: bool = True,
    ) -> None:
        self._starts: dict[str, NDArray] = {}
        self.start = _raveled(vars, point)
        n = self.start.size
        potential = QuadPotentialDiagAdapt(n, self.start, np.ones_like(self.start), 10)
        whole = on_full_data(model)
        super().__init__(
            [counterpart(variable, whole) for variable in vars],
            model=whole,
            potential=potential,
            rng=rng,
            initial_point=point,
            compile_kwargs=compile_kwargs,
            blocked=blocked,
        )
        self.vars = list(vars)
        transforms = model.rvs_to_transforms.values()
        self._has_angles = any(isinstance(t, CircularTransform) for t in transforms)
        self._describe(model, rows)
        refuse_faulty(model)

    def use(self, settings: Mapping[str, Any]) -> None:
        """Take settings that ``pm.sample`` was given for NUTS, and PyMC's defaults of others.

        Parameters
        ----------
        settings : dict
            ``target_accept``, ``max_treedepth`` and ``early_max_treedepth``, as in `pymc.NUTS`, and
            ``init``, which is that of ``pm.sample()``.

        Raises
        ------
        SettingError
            Another setting, which only a new NUTS can have.
        """
        init = settings.get("init", _INIT)
        if init != _INIT or settings.keys() - _LATE_SETTINGS.keys() - {"init"}:
            given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
            raise SettingError(
                f"{given} does not reach the NUTS that AusterityMH() has already set up: leave "
                "out step= to sample with it."
            )
        its = {name: settings.get(name, default) for name, default in _LATE_SETTINGS.items()}
        set_target_acceptance(self, its["target_accept"])
        self.max_treedepth = its["max_treedepth"]
        self.early_max_treedepth = its["early_max_treedepth"]

    def resume(self, run: EarlierRun) -> None:
        """Begin chains at the last draws of an earlier run, tuned as that run was.

        Parameters
        ----------
        run : EarlierRun
            Draws of the variables of this step method.
        """
        self.learnt = run
        n = len(run.points)
        spread = (n * np.var(run.points, axis=0) + 5e-3) / (n + 5)  # as Stan regularizes it

        def transitions() -> None:
            rng = np.random.default_rng(_SEED)
            self.setup_chain(rng, _LEARNS, 0)
            place = RaveledVars(run.own_last[rng.integers(len(run.own_last))], ())
            for _ in range(_LEARNS):
                end_if_late()
                place, _ = pm.NUTS.astep(self, place)
            restore_interrupts()

        tune_steps_alone(self, spread, _WEIGHT, transitions)

    def begin_as_pymc(self, chains: ChainsToCome) -> None:
        """Begin the next chains where those of ``pm.sample()`` would, so that its draws are theirs.

        Parameters
        ----------
        chains : ChainsToCome
            What ``pm.sample`` knows of them.
        """
        self._starts = {}
        if self.learnt is not None:
            return

        def log_density(point: Mapping[str, NDArray]) -> float:
            return self._log_density(RaveledVars(_raveled(self.vars, point), ()))

        points = starts_of_nuts(self._model, chains, log_density)
        if not points:  # the first step says what is wrong
            return
        starts = [_raveled(self.vars, point) for point in points]
        set_first_mean(self, np.mean(starts, axis=0))
        states = map(_state_of, chains.generators)
        self._starts = dict(zip(states, starts, strict=True))

    def astep(self, q0: RaveledVars) -> tuple[RaveledVars, list[dict[str, Any]]]:
        """Take a step, the first one of a chain from a jittered start."""
        if self.iter_count == 0:
            start = self._starts.get(_state_of(self.rng))
            if start is not None:
                q0 = RaveledVars(start, q0.point_map_info)
            elif np.array_equal(q0.data, self.start):
                q0 = RaveledVars(self._first(q0), q0.point_map_info)
            if not self._is_possible(q0):
                refuse_not_finite(self._model)
        following, statistics = super().astep(q0)
        for of_draw in statistics:
            of_draw["n_rows_used"] = int(of_draw["tree_size"] * self.n_rows)
            of_draw["data_fraction"] = float(of_draw["tree_size"])
        return following, statistics

    @staticmethod
    def _progressbar_config(n_chains: int = 1) -> tuple:
        defer_interrupts()  # PyMC asks once, before the first draw, where the draws are collected
        return pm.NUTS._progressbar_config(n_chains)

    def _first(self, q0: RaveledVars) -> NDArray:
        """One of the last draws of an earlier run, or a start near the common one.

        The density is finite there, unless none is found: then the common one is returned.
        """
        if self.learnt is not None:
            ends = self.learnt.own_last
            return np.asarray(ends[self.rng.integers(len(ends))], dtype=self.start.dtype)
        for _ in range(_RETRIES):
            moved = self.start + self.rng.uniform(-1.0, 1.0, size=self.start.size)
            moved = moved.astype(self.start.dtype)
            if self._is_possible(RaveledVars(moved, q0.point_map_info)):
                return moved
        return self.start

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-density in nats, and its gradient, shape (d,)."""
        end_if_late()
        at = point.astype(self.start.dtype)
        state = self.integrator.compute_state(RaveledVars(at, ()), np.zeros_like(at))
        return float(state.model_logp), np.array(state.q_grad, dtype=np.float64)

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian, shape (d, d), from differences of gradients."""
        slopes = []
        for moves in np.diag(_SMALL_STEP * np.maximum(np.abs(point), 1.0)):
            ahead, behind = self.gradient(point + moves)[1], self.gradient(point - moves)[1]
            slopes.append((ahead - behind) / (2.0 * moves.sum()))
        hessian = np.array(slopes)
        return (hessian + hessian.T) / 2.0

    def warn_of_modes(self, point: dict[str, NDArray], seconds: float) -> None:
        """Warn where searches from dispersed points end at several modes of comparable weight.

        With more than 30 entries, or angles, which have a mode at each full turn, none is searched.

        Parameters
        ----------
        point : dict
            The model's initial point.
        seconds : float
            Processor time of the searches; what they would find later is not known.

        Warns
        -----
        AusterityWarning
            There are several; the message is one sentence with a remedy.
        """
        if self.start.size > _MOST_ENTRIES or self._has_angles:
            return
        try:
            with within(seconds):
                modes = heaviest_modes(self.start, self, rng=np.random.default_rng(_SEED))
        except Exception as error:  # noqa: BLE001  the chains say it, unless they begin elsewhere
            _log.debug("No other modes were searched for: %s", error)
            return
        if len(modes) > 1:
            apart = np.abs(modes[1].point - modes[0].point) / np.linalg.norm(modes[0].root, axis=1)
            layout = PointMap.of(self.vars, point)
            (number,) = layout.numbers(np.array([np.argmax(apart)]))
            warn_user(
                f"{several_modes(len(modes), layout.names[number])}: a chain of NUTS may never "
                "leave the one where it starts; constrain what the data do not identify, such as a "
                "sign or an order."
            )

    def _is_possible(self, q0: RaveledVars) -> bool:
        return bool(np.isfinite(self._log_density(q0)))

    def _log_density(self, q: RaveledVars) -> float:
        return self.integrator.compute_state(q, np.zeros_like(q.data)).model_logp

    @property
    def _words(self) -> Words:
        cost = f"gradients of {self._all_rows}"
        beside = f" (with other step methods for {self._others})" if self._others else ""
        if find_spec("nutpie") is not None and not beside:
            cost += "; nutpie is installed and often faster (leave out step=)"
        return Words(f"PyMC's NUTS{beside} on all rows, because {self.reason}.", cost)


def _raveled(variables: Sequence, point: Mapping[str, NDArray]) -> NDArray:
    values = [np.ravel(point[variable.name]) for variable in variables]
    return np.concatenate(values).astype(variables[0].dtype)


def _state_of(generator: np.random.Generator) -> str:
    return str(generator.bit_generator.state)


class PyMCSteps(_OnAllRows, CompoundStep):
    """The step methods that PyMC selects, for models in which no variable has a gradient.

    Parameters
    ----------
    vars : sequence of variables
        Value variables.
    model : pymc.Model
        The model.
    point : dict
        The model's initial point.
    rows : dict of str to int
        Rows of each term of its likelihood.
    """

    def __init__(
        self,
        vars: Sequence,
        model: pm.Model,
        point: dict[str, NDArray],
        rows: Mapping[str, int],
    ) -> None:
        with on_full_data(model) as whole:
            _, selected = assign_step_methods(whole)
            names = {variable.name for variable in vars}
            own = {k: [v for v in those if v.name in names] for k, those in selected.items()}
            steps = instantiate_steppers(whole, [], own, initial_point=point)
        steps = steps if isinstance(steps, list) else [steps]
        for step in steps:
            step.vars = [counterpart(variable, model) for variable in step.vars]
        super().__init__(steps)
        self._describe(model, rows)

    def end_setup(self, stages: Mapping[str, float]) -> None:
        """End set-up; each step method passes the constants on."""
        of_each = self.stats_dtypes
        super().end_setup(stages)
        self.stats_dtypes = [StatisticsTypes(types, self.constants) for types in of_each]

    @property
    def _words(self) -> Words:
        names = ", ".join(dict.fromkeys(type(step).__name__ for step in self.methods))
        what = f"PyMC's {names} on all rows, because {self.reason}."
        return Words(what, f"{self._all_rows} at every step")
