"""NumPyro: NUTS on all rows, and HMC with energy conserving subsampling."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import HMCECS, NUTS, util
from scipy.optimize import minimize

from examples.benchmarks.peers.jax_models import MODELS
from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.run import Deadline, Run, now, tuning_share

WARMUP, DRAWS, CHUNK = 1_000, 1_000, 50
SUBSAMPLE, BLOCKS = 1_300, 100
"""As in the example of HMCECS in NumPyro's documentation."""


def nuts(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """NUTS on all rows, in double precision."""
    jax.config.update("jax_enable_x64", True)
    kernel = NUTS(MODELS[problem.family])
    return run_kernel(kernel, problem, {}, seconds, int(share * DRAWS), rows=problem.n_rows)


def hmcecs(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Second-order Taylor proxy about the mode, as far as its example in the documentation goes.

    The example finds the reference point by stochastic optimization. Here it is the mode on all
    rows, by L-BFGS, which can only help.
    """
    jax.config.update("jax_enable_x64", True)
    model = MODELS[problem.family]
    with phase() as finding:
        reference = mode(model, problem.rows)
    size = min(SUBSAMPLE, problem.n_rows // 2)
    proxy = HMCECS.taylor_proxy(reference, degree=2)
    kernel = HMCECS(NUTS(model), num_blocks=BLOCKS, proxy=proxy)
    run = run_kernel(
        kernel,
        problem,
        {"subsample_size": size},
        seconds,
        int(share * 10 * DRAWS),
        rows=size,
        start=reference,
    )
    run.setup_seconds += finding.other
    run.compile_seconds += finding.compiling
    return run


class Phase:
    """Processor time of a phase, told apart by the share of it that JAX spends compiling."""

    compiling = other = 0.0


@contextmanager
def phase() -> Iterator[Phase]:
    """Watch JAX compile."""
    spent: list[float] = []

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile"):
            spent.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    found, wall, used = Phase(), time.perf_counter(), now()
    yield found
    wall, used = time.perf_counter() - wall, now() - used
    jax.monitoring.clear_event_listeners()
    found.compiling = used * min(sum(spent) / wall, 1.0)
    found.other = used - found.compiling


def mode(model: Callable, rows: dict[str, np.ndarray]) -> dict[str, jax.Array]:
    """Posterior mode in unconstrained space, on the scale of the parameters."""
    info = util.initialize_model(jax.random.key(1), model, model_args=(rows,), dynamic_args=True)
    start, unravel = jax.flatten_util.ravel_pytree(info.param_info.z)
    rows = {name: jnp.asarray(values) for name, values in rows.items()}
    potential = jax.jit(
        jax.value_and_grad(lambda flat, rows: info.potential_fn(rows)(unravel(flat)))
    )

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = potential(flat, rows)
        return float(value), np.asarray(gradient)

    found = minimize(objective, np.zeros_like(start), jac=True, method="L-BFGS-B")
    return info.postprocess_fn(rows)(unravel(jnp.asarray(found.x)))


def run_kernel(
    kernel: Any,
    problem: Problem,
    options: dict[str, Any],
    seconds: float,
    n_draws: int,
    *,
    rows: int,
    start: dict[str, jax.Array] | None = None,
) -> Run:
    """Warm-up and draws in compiled chunks, between which the clock is read."""
    data = {name: jnp.asarray(values) for name, values in problem.rows.items()}
    shortened = tuning_share(rows)
    warmup = int(shortened * WARMUP)
    with phase() as starting:
        initial = None
        if start is not None:
            initial = util.unconstrain_fn(kernel.model, (data,), {}, start)
        state = jax.block_until_ready(
            kernel.init(jax.random.key(1), warmup, initial, (data,), options)
        )

    def chunk(state: Any, data: dict) -> tuple[Any, tuple]:
        def step(state: Any, _: None) -> tuple[Any, tuple]:
            state = kernel.sample(state, (data,), options)
            inner = getattr(state, "hmc_state", state)
            return state, (inner.z, inner.num_steps, inner.diverging)

        return jax.lax.scan(step, state, None, length=CHUNK)

    initialized = now()
    advance = jax.jit(chunk).lower(state, data).compile()
    compiled = now()
    deadline = Deadline(seconds)
    for _ in range(warmup // CHUNK):
        state, _ = jax.block_until_ready(advance(state, data))
        if deadline.passed:
            raise TimeoutError(f"did not end its {warmup:,} warm-up steps in {seconds:.0f} s")
    tuned = now()
    chunks = []
    while len(chunks) * CHUNK < n_draws and not deadline.passed:
        state, kept = jax.block_until_ready(advance(state, data))
        chunks.append(kept)
    ended = now()
    z, n_steps, diverging = jax.tree.map(lambda *parts: jnp.concatenate(parts), *chunks)
    z = {name: values for name, values in z.items() if name != "rows"}
    constrained = jax.vmap(kernel.postprocess_fn((data,), options))(z)
    return Run(
        draws={name: np.asarray(values) for name, values in constrained.items() if name != "rows"},
        setup_seconds=starting.other,
        compile_seconds=starting.compiling + compiled - initialized,
        tuning_seconds=(tuned - compiled) / shortened,
        tuning_share=shortened,
        sampling_seconds=ended - tuned,
        rows_per_evaluation=float(rows),
        evaluations_per_draw=float(n_steps.mean()),
        stopped_early=len(chunks) * CHUNK < n_draws,
        facts={"divergences": int(diverging.sum())},
    )
