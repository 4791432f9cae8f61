"""What NUTS is expected to take, which decides whether set-up is worth its time."""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity._pymc import Elemwise, ancestors
from pymc_austerity.diagnostics.convergence import effective_draws, r_hat_of_entries
from pymc_austerity.model import rows_observed
from pymc_austerity.model.cut import array_of
from pymc_austerity.step_methods.interrupts import restore_interrupts

_GRADIENTS, _AT_DIMENSION = 7.0, 5
"""Gradients of a transition of NUTS in a well behaved posterior of so many dimensions; they grow
with the fourth root of the dimension (Beskos et al. 2013)."""
_PER_GRADIENT, _PER_OPERATION, _PER_NUMBER = 1.0e-4, 1.1e-9, 1.5e-9
"""Seconds: PyMC's work on a step of a trajectory, an operation on an entry with its derivatives,
and a product with one of the numbers that belong to the rows."""
_OF_SPARSE = 2
"""Numbers of a dense matrix that take as long as one of a sparse one."""
_TRANSITIONS = 4_000
"""A run of two chains, 1,000 draws each, as many for tuning."""
SETUP_SECONDS = 12.0
"""A run of NUTS that takes less is not worth the set-up of another step method."""


class Size(NamedTuple):
    """Size of a model.

    Attributes
    ----------
    n_rows : int
        Entries of the observed variables.
    n_operations : int
        Elementwise operations of their log-likelihood.
    n_numbers : int
        Entries of all arrays on which these depend, such as predictors.
    dimension : int
        Entries of the free variables.
    """

    n_rows: int
    n_operations: int
    n_numbers: int
    dimension: int


def size_of(model: pm.Model, point: Mapping[str, NDArray]) -> Size:
    """Size of a model, from its graph.

    Parameters
    ----------
    model : pymc.Model
    point : dict
        Its initial point.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.step_methods.expected_time import size_of
    >>> with pm.Model() as model:
    ...     x = pm.Data("x", np.zeros((50, 3)))
    ...     _ = pm.Normal("y", x @ pm.Normal("b", shape=3), 1.0, observed=np.zeros(50))
    >>> size = size_of(model, model.initial_point())
    >>> size.n_rows, size.dimension
    (50, 3)
    """
    arrays = [array_of(variable) for variable in ancestors(model.observed_RVs)]
    numbers = sum(np.size(array) for array in arrays if isinstance(array, np.ndarray))
    numbers += sum(_OF_SPARSE * array.nnz for array in arrays if sparse.issparse(array))
    dimension = sum(np.size(value) for value in point.values())
    n_rows, observed = rows_observed(model), model.observed_RVs
    terms = model.logp(vars=list(observed), sum=False) if observed else []
    operations = [
        _elementwise(term, n_rows[variable.name])
        for variable, term in zip(observed, terms, strict=True)
    ]
    return Size(sum(n_rows.values()), sum(operations), numbers, dimension)


def _elementwise(term: Any, n_rows: int) -> int:
    """Number of operations on entries of arrays that a variable depends on.

    Where the length of the first axis is not known, it is taken for that of the rows.
    """
    nodes = {variable.owner for variable in ancestors([term]) if variable.owner}
    shapes = [node.outputs[0].type.shape for node in nodes if isinstance(node.op, Elemwise)]
    return sum(
        prod([shape[0] or n_rows, *(length or 1 for length in shape[1:])])
        for shape in shapes
        if shape
    )


def seconds_per_effective_draw(size: Size) -> float:
    """Seconds that NUTS needs for an effective draw of a well behaved posterior.

    Parameters
    ----------
    size : Size
        Size of the model.

    Examples
    --------
    >>> from pymc_austerity.step_methods.expected_time import Size
    >>> round(seconds_per_effective_draw(Size(1_000_000, 13_000_000, 20_000_000, 20)), 1)
    0.4
    """
    gradients = _GRADIENTS * (size.dimension / _AT_DIMENSION) ** 0.25
    per_gradient = _PER_GRADIENT + _PER_OPERATION * size.n_operations + _PER_NUMBER * size.n_numbers
    return gradients * per_gradient


def nuts_seconds(size: Size) -> float:
    """Seconds that a run of NUTS takes, without compilation.

    Parameters
    ----------
    size : Size
        Size of the model.

    Examples
    --------
    >>> from pymc_austerity.step_methods.expected_time import Size
    >>> round(nuts_seconds(Size(1_000, 13_000, 3_000, 5)))
    3
    """
    return _TRANSITIONS * seconds_per_effective_draw(size)


_N_CHAINS, _N_STEPS = 4, 400
_FIRST_STEPS = 3
"""Steps that compile what is left to compile, before time counts."""
_FEWEST_STEPS = 40
"""With fewer steps of a chain, nothing is known but the time of a step."""
_PATIENCE = 10
"""Times the given time in which a chain must have made these."""
_FEWEST_MOVES = 3
"""Points that a chain visits in its second half, at least."""
_LARGEST_R_HAT = 2.0
"""Chains that differ by more have not forgotten where they began: 200 steps with ten effective
draws each give less in the worst of 1,000 entries."""
_IN_TAILS = 0.005
"""Share of the entries of a variable that may differ by more."""
_SEED = 20_140_622


class Probe(NamedTuple):
    """What short chains showed.

    Attributes
    ----------
    wrong : str
        Why the step method should not be used, as a clause; empty if there is no reason.
    seconds_per_effective_draw : float
        Of the entry that mixes worst; that of a step where too little was seen.
    share_effective : float
        Effective draws of a draw; NaN where too little was seen.
    share_of_rows : float
        Rows that a step reads, as a share of all, on average.
    """

    wrong: str
    seconds_per_effective_draw: float
    share_effective: float
    share_of_rows: float = 0.0


def probe(step: Any, point: dict[str, NDArray], most_seconds: float) -> Probe:
    """Let a step method make short chains while it tunes, from dispersed starts.

    Parameters
    ----------
    step : step method
        It begins its own chains anew when ``pm.sample`` runs.
    point : dict
        The model's initial point, from which chains disperse.
    most_seconds : float
        Processor time of the chains, more where they have made few steps.
    """
    names = [variable.name for variable in step.vars]
    first, *others = np.random.default_rng(_SEED).spawn(1 + _N_CHAINS)
    with _between_chains(step):
        list(itertools.islice(_chain(step, point, names, first, np.inf), _FIRST_STEPS))
        started = time.process_time()
        seconds = most_seconds / _N_CHAINS
        chains = [list(_chain(step, point, names, rng, seconds)) for rng in others]
    per_step = (time.process_time() - started) / sum(map(len, chains))
    read = float(np.mean([share for chain in chains for _, share in chain]))
    n_kept = min(map(len, chains)) // 2
    if n_kept < _FEWEST_STEPS // 2:
        return Probe("", per_step, np.nan, read)
    kept = np.stack([[place for place, _ in chain[-n_kept:]] for chain in chains])
    n_points = min(len(np.unique(chain, axis=0)) for chain in kept)
    if n_points < _FEWEST_MOVES:
        return Probe("short chains from dispersed starts did not move", np.inf, 0.0)
    ends = np.cumsum([np.size(point[name]) for name in names])[:-1]
    if any(_worst(own) > _LARGEST_R_HAT for own in np.split(r_hat_of_entries(kept), ends)):
        return Probe("short chains did not forget where they began", np.inf, 0.0)
    share = effective_draws(kept, _IN_TAILS) / kept[..., 0].size
    return Probe("", per_step / share, share, read)


def _worst(r_hat: NDArray[np.float64]) -> float:
    """Of a variable; a few of many levels may stay in a tail for some steps."""
    return float(np.quantile(r_hat, 1.0 - _IN_TAILS, method="higher"))


def _chain(
    step: Any, point: dict[str, NDArray], names: list[str], rng: np.random.Generator, seconds: float
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Where each step leads, and the share of the rows that it reads."""
    step.set_rng(rng)
    current = dict(point)
    started = time.process_time()
    for n_made in range(1, _N_STEPS + 1):
        current, statistics = step.step(current)
        place = np.concatenate([np.ravel(current[name]) for name in names])
        yield place, sum(stats["data_fraction"] for stats in statistics)
        spent = time.process_time() - started
        if spent > (seconds if n_made >= _FEWEST_STEPS else _PATIENCE * seconds):
            return


@contextmanager
def _between_chains(step: Any) -> Iterator[None]:
    """Leave a step method as if no chain had begun."""
    try:
        yield
    finally:
        step.reset_tuning()
        restore_interrupts()
