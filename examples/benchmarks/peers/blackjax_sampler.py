"""Stochastic gradients with control variates, of BlackJAX: Langevin dynamics and Hamiltonian."""

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.sgmcmc.gradients import control_variates, grad_estimator
from jax.flatten_util import ravel_pytree
from numpyro.infer import util

from examples.benchmarks.peers.jax_models import MODELS
from examples.benchmarks.peers.numpyro_samplers import mode, phase
from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.run import Deadline, Run, now

BATCH, CHUNK, DRAWS, THINNING = 1_000, 50, 10_000, 10
STEP = 0.1
"""Step times the largest precision of the posterior: sds too large by about 2.5 %."""
LEAPS, LEAP = 10, 0.1
"""Steps of a trajectory, the default, and the length of one in sds of the stiffest direction: sds
of normal posteriors come out too large by 4 to 5 %, with 0.3 by up to 21 %."""

Step = Callable[[Any, Any, Any], Any]
"""Key, point and rows of a step to the next point."""


def sgld(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Constant steps, as small as the stiffest direction of the posterior at its mode demands.

    The discretisation error of a step h in a direction of precision k is an sd too large by the
    share h k / 4. No step is accepted or rejected, so that nothing removes it.
    """

    def make(estimator: Any, stiffness: float) -> Step:
        kernel = blackjax.sgld(estimator)
        return lambda key, z, batch: kernel.step(key, z, batch, STEP / stiffness)

    return run(problem, seconds, share, make, steps_per_draw=THINNING)


def sghmc(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Trajectories with the friction that damps the stiffest direction in one period.

    BlackJAX draws a momentum for every trajectory and uses one mini-batch along it.
    """

    def make(estimator: Any, stiffness: float) -> Step:
        frequency = np.sqrt(stiffness)
        kernel = blackjax.sghmc(estimator, LEAPS, alpha=frequency)
        return lambda key, z, batch: kernel.step(key, z, batch, LEAP / frequency)

    return run(problem, seconds, share, make, gradients_per_step=LEAPS)


def run(
    problem: Problem,
    seconds: float,
    share: float,
    make: Callable[[Any, float], Step],
    *,
    steps_per_draw: int = 1,
    gradients_per_step: int = 1,
) -> Run:
    """Control variates about the mode, then draws in compiled chunks."""
    jax.config.update("jax_enable_x64", True)
    model = MODELS[problem.family]
    data = {name: jnp.asarray(values) for name, values in problem.rows.items()}
    with phase() as setup:
        start = mode(model, problem.rows)
        z = util.unconstrain_fn(model, (data,), {}, start)
        log_prior, log_likelihood = parts(model, data)
        estimator = grad_estimator(log_prior, log_likelihood, problem.n_rows)
        estimator = control_variates(estimator, z, data)
        stiffness = float(largest_curvature(model, z, data))
    step = make(estimator, stiffness)

    def chunk(z: Any, key: Any, data: Any) -> tuple[Any, Any]:
        def one(z: Any, key: Any) -> tuple[Any, None]:
            rows_key, key = jax.random.split(key)
            rows = jax.random.randint(rows_key, (BATCH,), 0, problem.n_rows)
            batch = {name: values[rows] for name, values in data.items()}
            return step(key, z, batch), None

        def thinned(z: Any, key: Any) -> tuple[Any, Any]:
            z, _ = jax.lax.scan(one, z, jax.random.split(key, steps_per_draw))
            return z, z

        return jax.lax.scan(thinned, z, jax.random.split(key, CHUNK))

    key = jax.random.key(1)
    before = now()
    advance = jax.jit(chunk).lower(z, key, data).compile()
    compiled = now()
    deadline, chunks = Deadline(seconds), []
    for i in range(10):  # burn-in
        z, _ = jax.block_until_ready(advance(z, jax.random.fold_in(key, 10**6 + i), data))
    tuned = now()
    while len(chunks) * CHUNK < share * DRAWS and not deadline.passed:
        z, kept = jax.block_until_ready(advance(z, jax.random.fold_in(key, len(chunks)), data))
        chunks.append(kept)
    ended = now()
    draws = jax.tree.map(lambda *pieces: jnp.concatenate(pieces), *chunks)
    constrained = jax.vmap(lambda z: util.constrain_fn(model, (data,), {}, z))(draws)
    return Run(
        draws={name: np.asarray(values) for name, values in constrained.items()},
        setup_seconds=setup.other,
        compile_seconds=setup.compiling + compiled - before,
        tuning_seconds=tuned - compiled,
        sampling_seconds=ended - tuned,
        rows_per_evaluation=float(BATCH),
        evaluations_per_draw=float(steps_per_draw * gradients_per_step),
        stopped_early=len(chunks) * CHUNK < share * DRAWS,
        facts={"stiffness": stiffness},
    )


def parts(model: Any, data: Any) -> tuple[Any, Any]:
    """Log-prior of a point in unconstrained space, and log-likelihood of one row."""

    def log_likelihood(z: Any, row: Any) -> Any:
        rows = {name: values[None] for name, values in row.items()}
        point = util.constrain_fn(model, (rows,), {}, z)
        return util.log_likelihood(model, point, rows, batch_ndims=0)["y"].sum()

    def log_prior(z: Any) -> Any:
        few = {name: values[:1] for name, values in data.items()}
        row = {name: values[0] for name, values in few.items()}
        return -util.potential_energy(model, (few,), {}, z) - log_likelihood(z, row)

    return log_prior, log_likelihood


def largest_curvature(model: Any, z: Any, data: Any) -> Any:
    """Largest eigenvalue of the negative Hessian at the mode."""
    flat, unravel = ravel_pytree(z)

    def potential(flat: Any) -> Any:
        return util.potential_energy(model, (data,), {}, unravel(flat))

    return jnp.linalg.eigvalsh(jax.hessian(potential)(flat))[-1]
