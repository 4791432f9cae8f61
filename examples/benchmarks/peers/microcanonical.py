"""Microcanonical samplers of BlackJAX: MAMS, one chain, and LAPS, an ensemble of chains."""

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.laps import laps as run_laps
from blackjax.mcmc import adjusted_mclmc_dynamic as mams_kernel
from jax.flatten_util import ravel_pytree
from numpyro.infer import util

from examples.benchmarks.peers.jax_models import MODELS
from examples.benchmarks.peers.numpyro_samplers import phase
from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.run import Deadline, Run, now, tuning_share

TUNING, DRAWS, CHUNK = 2_000, 2_000, 50
ACCEPTED = 0.9
"""Rate of acceptance that BlackJAX's own example of MAMS aims at."""
CHAINS, BURN_IN, ADJUSTED = 1_024, 500, 300
"""Of LAPS: its burn-in ends by itself before; 300 gradients of adjusted moves as in its example."""


def mams(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Metropolis-adjusted microcanonical sampling, by default with two steps a trajectory."""
    target = Target(problem)
    shortened = tuning_share(problem.n_rows)
    tuning = int(shortened * TUNING)
    moves = mams_kernel.build_kernel(mams_kernel.make_random_trajectory_length_fn(True))

    def tune(key: Any, data: Any) -> tuple[Any, Any, Any]:
        first, second = jax.random.split(key)
        density = target.density(data)
        state = mams_kernel.init(jnp.asarray(target.start), density, first)
        return blackjax.adjusted_mclmc_find_L_and_step_size(
            moves, density, tuning, state, second, ACCEPTED, frac_tune1=0.5, frac_tune2=0.5
        )

    def chunk(state: Any, key: Any, found: Any, data: Any) -> tuple[Any, Any]:
        def step(state: Any, key: Any) -> tuple[Any, Any]:
            state, info = moves(
                key,
                state,
                target.density(data),
                step_size=found.step_size,
                inverse_mass_matrix=found.inverse_mass_matrix,
                integration_steps_params=(found.L / found.step_size,),
            )
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(step, state, jax.random.split(key, CHUNK))

    key = jax.random.key(1)
    before = now()
    tuner = jax.jit(tune).lower(key, target.data).compile()
    tuner_compiled = now()
    state, found, _ = jax.block_until_ready(tuner(key, target.data))
    tuned = now()
    advance = jax.jit(chunk).lower(state, key, found, target.data).compile()
    compiled = now()
    deadline, chunks = Deadline(seconds - (tuned - tuner_compiled)), []
    while len(chunks) * CHUNK < share * DRAWS and not deadline.passed:
        key, now_key = jax.random.split(key)
        state, kept = jax.block_until_ready(advance(state, now_key, found, target.data))
        chunks.append(kept)
    ended = now()
    if not chunks:
        raise TimeoutError(f"did not end its {tuning:,} tuning steps in {seconds:.0f} s")
    positions, n_steps = jax.tree.map(lambda *pieces: jnp.concatenate(pieces), *chunks)
    return Run(
        draws=target.constrained(positions),
        setup_seconds=target.setup_seconds,
        compile_seconds=target.compile_seconds + tuner_compiled - before + compiled - tuned,
        tuning_seconds=(tuned - tuner_compiled) / shortened,
        tuning_share=shortened,
        sampling_seconds=ended - compiled,
        rows_per_evaluation=float(problem.n_rows),
        evaluations_per_draw=2.0 * float(n_steps.mean()),
        stopped_early=len(chunks) * CHUNK < share * DRAWS,
    )


def laps(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """Late adjusted parallel sampling, of every chain the last state: draws are independent.

    Nothing stops it before its end, so that `seconds` are not looked at.
    """
    target = Target(problem)
    n_chains = int(share * CHAINS)
    density = target.density(target.data)

    def initial(key: Any) -> Any:
        return jax.random.uniform(key, target.start.shape, minval=-2.0, maxval=2.0)

    with phase() as running:
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), "chains")
        sizes = {"num_steps1": BURN_IN, "num_steps2": ADJUSTED, "num_chains": n_chains}
        info, per_step, *_, last = run_laps(
            density, initial, len(target.start), mesh=mesh, rng_key=jax.random.key(1), **sizes
        )
        positions = jax.block_until_ready(last.position)
    burn_in = len(jax.tree.leaves(info["phase_1"])[0])
    return Run(
        draws=target.constrained(positions),
        setup_seconds=target.setup_seconds,
        compile_seconds=target.compile_seconds + running.compiling,
        tuning_seconds=0.0,
        sampling_seconds=running.other,
        rows_per_evaluation=float(problem.n_rows),
        evaluations_per_draw=float(burn_in * per_step + ADJUSTED),
        facts={"chains": n_chains},
    )


class Target:
    """A log-density of a flat vector, on the device that JAX uses, in double precision."""

    def __init__(self, problem: Problem) -> None:
        jax.config.update("jax_enable_x64", True)
        self._model = MODELS[problem.family]
        with phase() as starting:
            self.data = {name: jnp.asarray(values) for name, values in problem.rows.items()}
            info = util.initialize_model(
                jax.random.key(1), self._model, model_args=(self.data,), dynamic_args=True
            )
            flat, self._unravel = ravel_pytree(info.param_info.z)
            self.start = np.asarray(flat)
        self.setup_seconds, self.compile_seconds = starting.other, starting.compiling

    def density(self, data: Any) -> Callable[[Any], Any]:
        """Log-density of a point, given the rows."""
        return lambda flat: -util.potential_energy(self._model, (data,), {}, self._unravel(flat))

    def constrained(self, positions: Any) -> dict[str, np.ndarray]:
        """Draws of every variable on its own scale."""

        def one(flat: Any) -> Any:
            return util.constrain_fn(self._model, (self.data,), {}, self._unravel(flat))

        return {name: np.asarray(values) for name, values in jax.vmap(one)(positions).items()}
