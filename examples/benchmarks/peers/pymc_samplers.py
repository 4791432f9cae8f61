"""Samplers that run in ``pm.sample``: ours, Metropolis, DEMetropolisZ and NUTS."""

from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pymc as pm
import pytensor

from examples.benchmarks.peers.compiling import compile_clock
from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.run import Deadline, Run, now, tuning_share
from pymc_austerity import AusterityMH, FireflyMH
from pymc_austerity.proposals import RandomWalkProposal

NUMBA = {"mode": "NUMBA"}
"""Faster than PyMC's default where the C backend has no BLAS, as in installations with pip."""

MANY = 20_000
"""Draws of the random walks."""

LOOK = 0.01
"""Seconds on the wall between looks at the processor time, which takes a good part of a draw."""


class Interruption:
    """Notes when tuning ends, and ends a run when its time is up.

    PyMC keeps the draws of a run that is interrupted with the keyboard, which is what this feigns.
    """

    def __init__(self, step: Any, deadline: Deadline) -> None:
        self.started = self.tuned = now()
        self.is_tuned = self.stopped = False
        self.deadline, self.next_look = deadline, 0.0
        self._step, self._stop_tuning = step.step, step.stop_tuning
        step.step, step.stop_tuning = self.step, self.stop_tuning

    def step(self, point: Any) -> Any:
        """One step of the wrapped method."""
        if perf_counter() >= self.next_look:
            self.next_look = perf_counter() + LOOK
            if self.deadline.passed:
                self.stopped = True
                raise KeyboardInterrupt
        return self._step(point)

    def stop_tuning(self) -> None:
        """End of tuning of the wrapped method."""
        self._stop_tuning()
        if not self.is_tuned:
            self.tuned, self.is_tuned = now(), True


def sample(
    problem: Problem,
    make_step: Callable[[], tuple[Any, Any]],
    n_draws: int,
    seconds: float,
    *,
    tune: int = 1_000,
) -> tuple[Run, Any]:
    """Run one chain; also returns its statistics."""
    with compile_clock() as clock, problem.model(problem.rows):
        started = now()
        step, initvals = make_step()
        constructed = now() - started
        compiled_at_setup = clock.seconds
        interruption = Interruption(step, Deadline(seconds))
        try:
            idata = pm.sample(
                step=step,
                initvals=initvals,
                tune=tune,
                draws=n_draws,
                chains=1,
                cores=1,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
        except ValueError as error:  # no draws
            if interruption.is_tuned:
                raise
            message = f"did not end its {tune:,} tuning steps in {seconds:.0f} s"
            raise TimeoutError(message) from error
        ended = now()
    tuning = interruption.tuned - interruption.started - (clock.seconds - compiled_at_setup)
    posterior = idata.posterior
    run = Run(
        draws={name: posterior[name].to_numpy()[0] for name in posterior.data_vars},
        setup_seconds=max(constructed - compiled_at_setup, 0.0),
        compile_seconds=clock.seconds,
        tuning_seconds=max(tuning, 0.0),
        sampling_seconds=ended - interruption.tuned,
        rows_per_evaluation=float(problem.n_rows),
        stopped_early=interruption.stopped,
    )
    return run, idata.sample_stats


def _austerity(
    problem: Problem, make_step: Callable[[], tuple[Any, Any]], n_draws: int, seconds: float
) -> Run:
    run, statistics = sample(problem, make_step, n_draws, seconds)
    run.rows_per_evaluation = float(statistics["n_rows_used"].mean())
    if "test" not in statistics.attrs:  # NUTS on all rows, which AusterityMH may choose
        run.facts = {"test": "exact"}
        return run
    run.facts = {
        "acceptance": float(statistics["accepted"].mean()),
        "looks": float(statistics["n_looks"].mean()),
        "share_exact": float(statistics["used_all_rows"].mean()),
        "control_variates": int(statistics.attrs["control_variates"]),
        "test": str(statistics.attrs["test"]),
    }
    return run


def defaults(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """AusterityMH as it comes."""
    return _austerity(problem, lambda: (AusterityMH(), None), int(10 * share * MANY), seconds)


def exact(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Exact decisions, whether or not they are the default for this model."""
    return _austerity(
        problem, lambda: (AusterityMH(test="exact"), None), int(share * MANY), seconds
    )


def sequential(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """The sequential t-test, whether or not it is the default for this model."""
    return _austerity(
        problem, lambda: (AusterityMH(epsilon=0.05), None), int(share * MANY), seconds
    )


def firefly(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Firefly Monte Carlo with the same proposals."""
    return _austerity(problem, lambda: (FireflyMH(), None), int(share * MANY), seconds)


def papers_setting(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """The algorithm of the paper to the letter, from the posterior mode, as long as time allows.

    The mode spares it the way to the posterior, which a random walk with wrong decisions may not
    find, so that what is seen is the sampler and not its start.
    """

    def make_step() -> tuple[Any, dict[str, Any]]:
        with pytensor.config.change_flags(mode="NUMBA"):
            mode = pm.find_MAP(progressbar=False)
        names = [variable.name for variable in pm.modelcontext(None).free_RVs]
        step = AusterityMH(
            control_variates=None,
            sampling="windows",
            proposal=RandomWalkProposal(),
            epsilon=0.05,
            batch_size=500,
        )
        return step, {name: mode[name] for name in names}

    return _austerity(problem, make_step, int(5 * share * MANY), seconds)


def metropolis(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """One Metropolis step for each variable, which moves its entries one by one."""

    calls = Counter()

    def make_step() -> tuple[Any, None]:
        step = pm.Metropolis(compile_kwargs=NUMBA)
        for method in getattr(step, "methods", [step]):
            method.delta_logp = counted(method.delta_logp, calls)
        return step, None

    run, _ = sample(problem, make_step, int(share * MANY), seconds)
    run.evaluations_per_draw = calls["all"] / (len(next(iter(run.draws.values()))) + 1_000)
    return run


def counted(function: Callable, calls: Counter) -> Callable:
    """Count the calls of a function."""

    def counting(*args: Any) -> Any:
        calls["all"] += 1
        return function(*args)

    return counting


def demetropolis_z(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Differential evolution with the history of the chain; all variables at once."""

    def make_step() -> tuple[Any, None]:
        return pm.DEMetropolisZ(compile_kwargs=NUMBA), None

    return sample(problem, make_step, int(share * MANY), seconds)[0]


def nuts(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """PyMC's own NUTS, started as ``pm.sample`` starts it."""

    def make_step() -> tuple[Any, Any]:
        points, step = pm.init_nuts(
            chains=1, random_seed=[1], progressbar=False, compile_kwargs=NUMBA
        )
        return step, points

    shortened = tuning_share(problem.n_rows)
    tune = int(1_000 * shortened)
    run, statistics = sample(problem, make_step, int(share * 1_000), seconds, tune=tune)
    run.tuning_seconds /= shortened
    run.tuning_share = shortened
    run.evaluations_per_draw = float(np.mean(statistics["n_steps"]))
    run.facts = {"divergences": int(statistics["diverging"].sum())}
    return run
