"""An earlier run: a new run continues it and is tuned from its draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from numpy.typing import NDArray

from pymc_austerity._pymc import make_initial_point_fn
from pymc_austerity.deciding.decider import DecisionState
from pymc_austerity.deciding.exact import AnyDecider, ExactState
from pymc_austerity.errors import SettingError
from pymc_austerity.levels import Sweep
from pymc_austerity.proposals import Proposal
from pymc_austerity.setup.coordinates import Coordinates
from pymc_austerity.setup.embedding import Embedding
from pymc_austerity.setup.model_inputs import draws_of_model, raveled

_MOST_DRAWS = 500
_FEWEST_DRAWS = 10
_STEPS = 1_000
"""As many as ``pm.sample`` tunes by default."""


@dataclass(frozen=True, eq=False)
class EarlierRun:
    """Draws of an earlier run, in unconstrained space.

    Attributes
    ----------
    points : array, shape (n, d)
        At most 500 draws, evenly spaced.
    last : array, shape (n_chains, d)
        Last draw of each chain.
    own_last : array, shape (n_chains, k)
        The same draws, but of the variables of the step method alone.
    """

    points: NDArray
    last: NDArray
    own_last: NDArray

    def seen_in(self, coordinates: Coordinates) -> "EarlierRun":
        """The same draws in other coordinates."""
        if not coordinates.are_changed:
            return self
        draws = (self.points, self.last, self.own_last)
        return EarlierRun(*(np.array([coordinates.inner(x) for x in some]) for some in draws))


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a chain begins with.

    Attributes
    ----------
    proposal_state : Any
        A tuned proposal, or the tuned moves of a sweep.
    decision_state : DecisionState, ExactState or None
        The test after tuning; None for sweeps.
    starts : array, shape (n, d)
        Where chains may start.
    """

    proposal_state: Any
    decision_state: DecisionState | ExactState | None
    starts: NDArray

    def start(self, rng: np.random.Generator) -> NDArray:
        """One of the starts."""
        return self.starts[rng.integers(len(self.starts))]


def earlier_run(resume: Any, variables: list, own: list, model: pm.Model) -> EarlierRun | None:
    """The draws that a user gives, as points in unconstrained space.

    Parameters
    ----------
    resume : None, InferenceData or DataTree
        The result of ``pm.sample``.
    variables : list
        Value variables of decisions.
    own : list
        Value variables of the step method.
    model : pymc.Model
        The model they belong to.

    Raises
    ------
    SettingError
        It is not a run of this model, or has too few draws.
    """
    if resume is None:
        return None
    draws = checked_draws(resume, [*variables, *own], model)
    n_chains, n_draws = next(iter(draws.values())).shape[:2]
    if n_chains * n_draws < _FEWEST_DRAWS:
        raise SettingError(
            f"resume has {n_chains * n_draws} draws, which are too few: give a run of at least "
            f"{_FEWEST_DRAWS}."
        )
    spaced = np.unique(np.linspace(0, n_chains * n_draws - 1, _MOST_DRAWS).astype(int))
    last = n_draws - 1 + n_draws * np.arange(n_chains)
    points = list(_unconstrained(draws, np.concatenate([spaced, last]), model))
    points, ends = points[: spaced.size], points[spaced.size :]
    return EarlierRun(*starmap(_raveled, [(points, variables), (ends, variables), (ends, own)]))


def checked_draws(resume: Any, variables: list, model: pm.Model) -> dict[str, NDArray]:
    """The draws of an earlier run, each of shape (chains, draws, ...), once they fit the model.

    Parameters
    ----------
    resume : InferenceData or DataTree
    variables : list
        Value variables that it must have draws of.
    model : pymc.Model

    Raises
    ------
    SettingError
        It is not a run of this model.
    """
    posterior = draws_of_model("resume", resume)
    needed = {model.values_to_rvs[variable].name for variable in variables}
    # bounds of a variable may be other variables, which other step methods move
    names = [rv.name for rv in model.free_RVs if rv.name in needed or rv.name in posterior]
    draws = {name: _draws_of(name, posterior) for name in names}
    shapes = model.eval_rv_shapes()
    for name, values in draws.items():
        if values.shape[2:] != tuple(map(int, shapes[name])):
            raise SettingError(
                f"resume has draws of shape {values.shape[2:]} of {name!r}, which has shape "
                f"{tuple(map(int, shapes[name]))} in this model: give a run of this model."
            )
    return draws


def _raveled(points: Sequence[dict[str, NDArray]], variables: list) -> NDArray:
    return np.array([raveled(point, variables) for point in points])


def _draws_of(name: str, posterior: Any) -> NDArray:
    if name not in posterior:
        raise SettingError(f"resume has no draws of {name!r}: give a run of this model.")
    return np.asarray(posterior[name].transpose("chain", "draw", ...).values)


def _unconstrained(
    draws: dict[str, NDArray], which: NDArray[np.int64], model: pm.Model
) -> Iterator[dict[str, NDArray]]:
    """Some draws as points in unconstrained space."""
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in draws.items()}
    shared = {name: pytensor.shared(values[0], name=name) for name, values in flat.items()}
    overrides = {model[name]: variable for name, variable in shared.items()}
    point_of = make_initial_point_fn(model=model, overrides=overrides, jitter_rvs=set())
    for i in which:
        for name, variable in shared.items():
            variable.set_value(flat[name][i])
        yield point_of(0)


def learn(
    run: EarlierRun,
    proposal: Proposal[Any],
    decider: AnyDecider,
    embedding: Embedding,
    rng: np.random.Generator,
    *,
    is_tuned: bool = True,
) -> Learnt:
    """Tune a proposal and a test with a chain that starts where an earlier run ended.

    Parameters
    ----------
    run : EarlierRun
        The earlier run.
    proposal : Proposal
        The proposal to tune.
    decider : Decider or ExactDecider
        That of the step method; chains begin with the state that it then has.
    embedding : Embedding
        Layout and normal approximation; variables of other step methods stay fixed.
    rng : numpy.random.Generator
        Source of randomness.
    is_tuned : bool
        Whether there is anything to learn.
    """
    decider.begin_chain(rng)
    decider.reset()
    around, chain = embedding, rng.integers(len(run.last))
    state = proposal.init(around.layout, around.approximation)
    current = run.own_last[chain].astype(around.start.dtype)
    around.place(run.last[chain])
    for _ in range(_STEPS if is_tuned else 0):
        decider.begin_draw(tuning=True)
        current, _, state, _ = around.transition(
            decider, proposal, state, current, rng, tuning=True, adapts=True
        )
    decider.stop_tuning()
    return Learnt(proposal.freeze(state), decider.state, run.own_last)


def learn_sweeps(run: EarlierRun, sweep: Sweep, rng: np.random.Generator) -> Learnt:
    """Tune the moves of a model with groups by sweeps that start where an earlier run ended.

    Parameters
    ----------
    run : EarlierRun
        The earlier run.
    sweep : Sweep
        The moves.
    rng : numpy.random.Generator
        Source of randomness.
    """
    current, state = run.own_last[rng.integers(len(run.own_last))], sweep.init()
    for _ in range(_STEPS):
        current, state, _ = sweep.step(current, state, rng, tuning=True)
    return Learnt(sweep.freeze(state), None, run.own_last)
