"""The papers' chains, of so many steps each, and those of the defaults with the same budget."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from examples.austerity2014.parts import Parts
from examples.austerity2014.timed import TimedRun, sample_chain

Start = dict[str, NDArray]


def papers_chains(
    parts: Parts,
    samplers: Mapping[str, Callable[[], Any]],
    starts: Sequence[Start],
    steps: Mapping[str, int],
    describe: Callable[[TimedRun], dict[str, Any]],
    *,
    title: str = "",
) -> dict[str, list[dict[str, Any]]]:
    """Describe every chain of every sampler; each of them is a part that is not run twice.

    Parameters
    ----------
    parts : Parts
        What is finished.
    samplers : mapping of str to callable
        By name, what makes the step method for the model on the context stack.
    starts : sequence of dict
        Start of each chain, the same for all samplers.
    steps : mapping of str to int
        Steps of a chain, by the name of the sampler.
    describe : callable
        What to keep of a chain.
    title : str
        Put in front of the names of the parts.

    Returns
    -------
    dict of str to list
        What is kept of each chain, by the name of the sampler.
    """

    def chain(
        step_method: Callable[[], Any], n_steps: int, start: Start, part: str
    ) -> dict[str, Any]:
        step = step_method()
        per_draw = getattr(step, "steps_per_draw", 1)
        n_draws = max(n_steps // per_draw, 2)
        return describe(sample_chain(n_draws, step, start, seed=parts.seed(part)))

    found: dict[str, list[dict[str, Any]]] = {}
    for name, make in samplers.items():
        step_method = cache(make)  # made once, and only if a chain is missing
        found[name] = []
        for number, start in enumerate(starts):
            part = f"{title}{name}, chain {number}"
            finished = parts(part, partial(chain, step_method, steps[name], start, part))
            found[name].append(finished)
    return found


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """A step method, and the processor time that it took to set up."""
    started = time.process_time()
    return make(), time.process_time() - started


def seconds_of(chains: list[dict[str, Any]]) -> float:
    """Seconds of a sampler, mean over its chains."""
    return float(np.mean([chain["risk"]["seconds"][-1] for chain in chains]))


def defaults_chains(
    parts: Parts,
    make: Callable[[], Any],
    seconds: float,
    n_chains: int,
    describe: Callable[[TimedRun], dict[str, Any]],
    *,
    pilot: int = 100,
) -> list[dict[str, Any]]:
    """Describe chains of the defaults that take so many seconds, set-up and tuning counted.

    They start where the step method starts them. A short run finds out how long a draw takes; 20
    draws are made even if set-up and tuning alone take longer.
    """
    set_up = cache(partial(timed, make))

    def affordable() -> int:
        step, setup_seconds = set_up()
        tune = step.default_tune_steps
        tried = sample_chain(pilot, step, None, seed=parts.seed("pilot"), tune=tune)
        left = seconds - setup_seconds - tried.before
        return max(int(left * pilot / tried.seconds[0, -1]), 20)

    n_draws = parts("defaults, draws", affordable)
    return tuned_chains(parts, set_up, n_draws, n_chains, describe)


def tuned_chains(
    parts: Parts,
    set_up: Callable[[], tuple[Any, float]],
    n_draws: int,
    n_chains: int,
    describe: Callable[[TimedRun], dict[str, Any]],
    *,
    tune: int | None = None,
) -> list[dict[str, Any]]:
    """Describe chains of the defaults, of so many draws and of the usual tuning steps or others.

    `set_up` gives the step method and the processor time that it took to set up.
    """

    def chain(part: str) -> dict[str, Any]:
        step, setup_seconds = set_up()
        n_tune = step.default_tune_steps if tune is None else tune
        seed = parts.seed(part)
        run = sample_chain(n_draws, step, None, seed=seed, tune=n_tune, setup_seconds=setup_seconds)
        return describe(run)

    names = [f"defaults, chain {number}" for number in range(n_chains)]
    return [parts(name, partial(chain, name)) for name in names]
