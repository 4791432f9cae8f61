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
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from examples.benchmarks.peers.compiling import compile_clock
from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.reference import psislw
from examples.benchmarks.peers.run import Deadline, Run, now

NUMBA = {"mode": "NUMBA"}
NEWTON = {"optimize_method": "trust-ncg", "use_hess": True}
DRAWS, WEIGHTED_DRAWS = 10_000, 4_000
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
    return _laplace(problem, **NEWTON)


def weighted_laplace(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """The same, its draws resampled by Pareto smoothed importance weights."""
    return _laplace(problem, draws=WEIGHTED_DRAWS, is_weighted=True, **NEWTON)


def _laplace(
    problem: Problem, *, draws: int = DRAWS, is_weighted: bool = False, **settings: Any
) -> Run:
    with compile_clock() as clock, problem.model(problem.rows) as model:
        started = now()
        idata = pymc_extras.fit_laplace(
            draws=draws, random_seed=1, progressbar=False, compile_kwargs=NUMBA, **settings
        )
        chosen, pareto_k = _by_weight(model, idata) if is_weighted else (slice(None), None)
        idata = {"posterior": idata["posterior"].isel(draw=chosen)}
        run = approximation(model, idata, now() - started, clock.seconds, problem.n_rows)
    if pareto_k is not None:
        run.facts["pareto_k"] = pareto_k
    return run


def _by_weight(model: pm.Model, idata: Any) -> tuple[NDArray[np.intp], float]:
    """Numbers of the draws, as often as their smoothed weights say, and Pareto k."""
    fit, values = idata["fit"], {}
    for rv in model.free_RVs:
        draws, transform = idata["posterior"][rv.name].to_numpy()[0], model.rvs_to_transforms[rv]
        if transform is not None:
            draws = transform.forward(draws, *rv.owner.inputs).eval()
        values[model.rvs_to_values[rv].name] = draws
    order = dict.fromkeys(label.partition("[")[0] for label in fit["rows"].to_numpy())
    points = np.concatenate([values[name].reshape(WEIGHTED_DRAWS, -1) for name in order], axis=1)
    normal = multivariate_normal(fit["mean_vector"], fit["covariance_matrix"])
    density = model.compile_logp(mode="NUMBA")
    of_draws = [dict(zip(values, each, strict=True)) for each in zip(*values.values(), strict=True)]
    excess = np.array([float(density(point)) for point in of_draws]) - normal.logpdf(points)
    smoothed, pareto_k = psislw(excess)
    weights = np.exp(smoothed - smoothed.max())
    rng = np.random.default_rng(1)
    return rng.choice(WEIGHTED_DRAWS, WEIGHTED_DRAWS, p=weights / weights.sum()), float(pareto_k)


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
    posterior = idata["posterior"]
    return Run(
        draws={rv.name: posterior[rv.name].to_numpy()[0] for rv in model.free_RVs},
        setup_seconds=max(elapsed - compiling, 0.0),
        compile_seconds=compiling,
        tuning_seconds=0.0,
        sampling_seconds=0.0,
        rows_per_evaluation=n_rows,
        approximate=True,
    )
