"""NUTS of nutpie, with its numba backend."""

from contextlib import suppress
from typing import Any

import nutpie

from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.run import Deadline, Run, now, tuning_share

TUNE, DRAWS = 400, 1_000


def nuts(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """A diagonal metric, the default."""
    return run(problem, seconds, share, "diag")


def low_rank(problem: Problem, seconds: float, *, share: float = 1.0) -> Run:
    """A metric of few directions, which is experimental there."""
    return run(problem, seconds, share, "low_rank")


def run(
    problem: Problem, seconds: float, share: float, adaptation: str, tuned: float | None = None
) -> Run:
    """One chain; the time of tuning is told from that of sampling by the leapfrog steps.

    `tuned` is the share of the tuning steps that are made; None is that of the number of rows.
    """
    model = problem.model(problem.rows)
    shortened = tuning_share(problem.n_rows) if tuned is None else tuned
    tune = int(shortened * TUNE)
    started = now()
    compiled = nutpie.compile_pymc_model(model)
    compiled_at = now()
    sampler = nutpie.sample(
        compiled,
        draws=int(share * DRAWS),
        tune=tune,
        chains=1,
        adaptation=adaptation,
        cores=1,
        seed=1,
        progress_bar=False,
        blocking=False,
    )
    idata, stopped = wait(sampler, Deadline(seconds))
    elapsed = now() - compiled_at
    n_draws = idata.posterior.sizes.get("draw", 0)
    if n_draws < 20:
        raise TimeoutError(f"made {n_draws} draws after its {tune} tuning steps in {seconds:.0f} s")
    in_sampling = float(idata.sample_stats["n_steps"].sum())
    in_tuning = float(idata.warmup_sample_stats["n_steps"].sum())
    sampling = elapsed * in_sampling / (in_sampling + in_tuning)
    names = [variable.name for variable in model.free_RVs]
    return Run(
        draws={name: idata.posterior[name].to_numpy()[0] for name in names},
        setup_seconds=0.0,
        compile_seconds=compiled_at - started,
        tuning_seconds=(elapsed - sampling) / shortened,
        tuning_share=shortened,
        sampling_seconds=sampling,
        rows_per_evaluation=float(problem.n_rows),
        evaluations_per_draw=in_sampling / n_draws,
        stopped_early=stopped,
        facts={"divergences": int(idata.sample_stats["diverging"].sum())},
    )


def wait(sampler: Any, deadline: Deadline) -> tuple[Any, bool]:
    """The draws, and whether the time was up before they were complete."""
    while not deadline.passed:
        with suppress(TimeoutError):
            return sampler.wait(timeout=0.5), False
    return sampler.abort(), True
