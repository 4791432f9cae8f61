"""ADVI of PyMC, Laplace and Pathfinder of pymc-extras: approximations have no effective draws.

Draws of the fitted approximation are compared with the reference. More of them would not make it
any better, so that what counts are the seconds until they are there.
"""

from typing import Any

import numpy as np
import pymc as pm
import pymc_extras
import pytensor
import pytensor.tensor as pt

from examples.benchmarks.peers.compiling import compile_clock
from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.run import Deadline, Run, now

NUMBA = {"mode": "NUMBA"}
DRAWS = 10_000
BATCH, STEPS = 1_000, 40_000


def advi(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Mean-field ADVI on mini-batches, with PyMC's own optimizer."""
    rows, steps = problem.rows, int(share * STEPS)
    names = list(rows)
    whole = [pm.intX(part) if part.dtype.kind in "iu" else part for part in rows.values()]
    with compile_clock() as clock:
        started = now()
        batch = dict(zip(names, pm.Minibatch(*whole, batch_size=BATCH), strict=True))
        deadline, steps_made = Deadline(seconds), 0

        def watch(_: Any, __: Any, i: int) -> None:
            nonlocal steps_made
            steps_made = i
            if deadline.passed:
                raise StopIteration

        with problem.model(
            rows, {name: pt.as_tensor(part) for name, part in batch.items()}
        ) as model:
            with pytensor.config.change_flags(mode="NUMBA"):
                fitted = pm.fit(steps, callbacks=[watch], random_seed=1, progressbar=False)
            idata = fitted.sample(DRAWS, random_seed=1)
        run = approximation(model, idata, now() - started, clock.seconds, BATCH)
    run.stopped_early = steps_made < steps
    run.facts["steps"] = steps_made
    return run


def laplace(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """As it comes: BFGS, and its own estimate of the curvature."""
    return _laplace(problem)


def laplace_by_newton(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Newton steps in a trust region, with the Hessian of all rows."""
    return _laplace(problem, optimize_method="trust-ncg", use_hess=True)


def _laplace(problem: Problem, **settings: Any) -> Run:
    with compile_clock() as clock, problem.model(problem.rows) as model:
        started = now()
        idata = pymc_extras.fit_laplace(
            draws=DRAWS, random_seed=1, progressbar=False, compile_kwargs=NUMBA, **settings
        )
        return approximation(model, idata, now() - started, clock.seconds, problem.n_rows)


def pathfinder(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """As it comes, but for its paths, which run one after another."""
    with compile_clock() as clock, problem.model(problem.rows) as model:
        started = now()
        idata = pymc_extras.fit_pathfinder(
            random_seed=1,
            progressbar=False,
            parallel=False,
            compile_kwargs=NUMBA,
        )
        run = approximation(model, idata, now() - started, clock.seconds, problem.n_rows)
    run.facts["pareto_k"] = float(np.asarray(idata.pathfinder["pareto_k"]).max())
    return run


def approximation(
    model: pm.Model, idata: Any, elapsed: float, compiling: float, n_rows: float
) -> Run:
    """What is compared: draws, and the time that was not compilation as set-up."""
    posterior = idata.posterior
    return Run(
        draws={rv.name: posterior[rv.name].to_numpy()[0] for rv in model.free_RVs},
        setup_seconds=max(elapsed - compiling, 0.0),
        compile_seconds=compiling,
        tuning_seconds=0.0,
        sampling_seconds=0.0,
        rows_per_evaluation=n_rows,
        approximate=True,
    )
