"""What NUTS is expected to take, or takes: which decides whether set-up is worth its time."""

import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity._pymc import Elemwise, ancestors, computed_from, is_dot, scalar_name
from pymc_austerity.diagnostics.convergence import effective_draws
from pymc_austerity.model import rows_observed
from pymc_austerity.model.cut import array_of
from pymc_austerity.model.operations.table import OPERATIONS
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS
from pymc_austerity.step_methods.interrupts import restore_interrupts

_GRADIENTS, _AT_DIMENSION = 7.0, 5
"""Gradients of a transition of NUTS in a well behaved posterior of so many dimensions; they grow
with the fourth root of the dimension (Beskos et al. 2013)."""
_PER_GRADIENT, _PER_OPERATION, _PER_NUMBER = 2.0e-5, 8e-10, 4e-10
"""Seconds: PyMC's work on a step of a trajectory, an addition for an entry with its derivatives,
and a product with one of the numbers that belong to the rows."""
_OF_COSTLY, _OF_SPECIAL = 10, 22
"""Additions that take as long as an exponential, and as a special function such as log-gamma."""
_SPECIAL = {"Gamma", "GammaLn", "Psi", "TriGamma", "Erf", "Erfc", "Erfcx", "LogNormalProbability"}
_OF_SPARSE = 2
"""Numbers of a dense matrix that take as long as one of a sparse one."""
TRANSITIONS = 4_000
"""A run of two chains, 1,000 draws each, as many for tuning."""
_COMPILATION_SECONDS = 3.0
"""Time that NUTS takes to compile, at least."""
SETUP_SECONDS = 5.0
"""A run of NUTS in which rows are expected to take less is not worth another set-up."""
LONG_RUN = 8.0
"""Seconds of a run that is, where NUTS is compiled already and was measured."""

IN_TAILS = 0.005
"""Share of the entries of a variable that may mix worse than is seen."""
_SEED = 20_140_622
_USUAL, _ALL, _LAST, WATCHED = 100, 201, 50, 400
"""Transitions that show that NUTS is fast; that it makes otherwise, the last of them with a metric
that is learnt; of which the time is taken; and of which the second half shows how it mixes."""
_UNADAPTED = 4.0
"""Times as long as a transition takes with the first metric."""
_MOST_SECONDS, _MOST_BEFORE_ALL = 3.0, 5.0
"""Seconds of these transitions; and where no other set-up has begun, which they may save."""


class Size(NamedTuple):
    """Size of a model.

    Attributes
    ----------
    n_rows : int
        Entries of the observed variables.
    n_operations : int
        Elementwise operations of their log-likelihood; a costly one counts as several.
    n_numbers : int
        Entries of all arrays on which these depend, such as predictors.
    dimension : int
        Entries of the free variables.
    """

    n_rows: int
    n_operations: int
    n_numbers: int
    dimension: int


class CostOfNUTS(NamedTuple):
    """What NUTS takes, as expected from the size of a model, or as measured.

    Attributes
    ----------
    per_draw : float
        Seconds for an effective draw, or for a transition where these were measured.
    compilation : float
        Seconds.
    is_measured : bool
        Whether transitions were made.
    share_effective : float
        Effective draws of a draw, in tuned transitions; NaN where too few were made.
    """

    per_draw: float
    compilation: float = _COMPILATION_SECONDS
    is_measured: bool = False
    share_effective: float = np.nan

    @property
    def of_run(self) -> float:
        """Seconds that a run takes, without compilation."""
        return TRANSITIONS * self.per_draw


def size_of(
    model: pm.Model, point: Mapping[str, NDArray], rows: Mapping[str, int] | None = None
) -> Size:
    """Size of a model, from its graph.

    Parameters
    ----------
    model : pymc.Model
    point : dict
        Its initial point.
    rows : dict of str to int, optional
        Rows of each term of its likelihood; by default, of each observed variable.

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
    n_rows = rows_observed(model) if rows is None else rows
    observed, operations = [model[name] for name in n_rows], 0
    arrays = [array_of(variable) for variable in ancestors(observed)]
    numbers = sum(np.size(array) for array in arrays if isinstance(array, np.ndarray))
    numbers += sum(_OF_SPARSE * array.nnz for array in arrays if sparse.issparse(array))
    dimension = sum(np.size(value) for value in point.values())
    terms = model.logp(vars=observed, sum=False) if observed else []
    for variable, term in zip(observed, terms, strict=True):
        varying = computed_from([term], model.value_vars, through_shapes=False)
        nodes = {v.owner for v in varying if v.owner}
        made = [i for node in nodes if is_dot(node) for i in node.inputs if i.owner]
        for node in nodes:
            if isinstance(node.op, Elemwise):
                operations += _weight(node) * _entries(node.outputs, n_rows[variable.name])
        numbers += _entries([v for v in made if v not in varying], n_rows[variable.name])
    return Size(sum(n_rows.values()), operations, numbers, dimension)


def _weight(node: Any) -> int:
    """Additions that take as long as this operation."""
    name, inner = scalar_name(node), node.inputs[0].owner
    if name == "Log" and inner is not None and scalar_name(inner) == "Exp":
        return 0  # PyTensor takes both away
    if name in _SPECIAL or name not in OPERATIONS:
        return _OF_SPECIAL
    return _OF_COSTLY if OPERATIONS[name].is_costly and name != "Pow" else 1


def _entries(variables: Iterable[Any], n_rows: int) -> int:
    """Entries of arrays; a first axis of unknown length is taken for that of the rows."""
    shapes = [variable.type.shape for variable in variables]
    return sum(
        prod([shape[0] or n_rows, *(length or 1 for length in shape[1:])])
        for shape in shapes
        if shape
    )


def expected_cost(size: Size) -> CostOfNUTS:
    """What NUTS takes for a well behaved posterior.

    Parameters
    ----------
    size : Size
        Size of the model.

    Examples
    --------
    >>> from pymc_austerity.step_methods.expected_time import Size, expected_cost
    >>> cost = expected_cost(Size(1_000_000, 13_000_000, 20_000_000, 20))
    >>> round(cost.per_draw, 1), round(cost.of_run)
    (0.2, 729)
    """
    return CostOfNUTS(_gradients(size) * (_PER_GRADIENT + _of_rows(size)))


def seconds_of_rows(size: Size) -> float:
    """Seconds that the rows take in a run of NUTS, which is what other step methods can save.

    Parameters
    ----------
    size : Size
        Size of the model.

    Examples
    --------
    >>> from pymc_austerity.step_methods.expected_time import Size
    >>> round(seconds_of_rows(Size(1_000, 20_000, 3_000, 5)), 1)
    0.5
    """
    return TRANSITIONS * _gradients(size) * _of_rows(size)


def _gradients(size: Size) -> float:
    return float(_GRADIENTS * (size.dimension / _AT_DIMENSION) ** 0.25)


def _of_rows(size: Size) -> float:
    """Seconds of a gradient that go to the rows."""
    return _PER_OPERATION * size.n_operations + _PER_NUMBER * size.n_numbers


class _Transition(NamedTuple):
    """One transition: where it led, and what it took."""

    place: NDArray[np.float64]
    seconds: float
    n_gradients: int


class TrialOfNUTS:
    """A chain of NUTS that tunes, as far as is asked for.

    Parameters
    ----------
    step : AllRowsNUTS
        It begins anew when ``pm.sample`` runs.
    point : dict
        The model's initial point.

    Attributes
    ----------
    sizes : list of int
        Numbers of entries of the variables.
    """

    def __init__(self, step: AllRowsNUTS, point: dict[str, NDArray]) -> None:
        self._made: list[_Transition] = []
        self._chain = _transitions(step, point, WATCHED)
        self.sizes = [np.size(point[variable.name]) for variable in step.vars]

    def first(self, n: int) -> Iterator[_Transition]:
        """The first transitions of the chain, of which some may have been made."""
        yield from self._made[:n]
        for one in islice(self._chain, n - len(self._made)):
            self._made.append(one)
            yield one

    def close(self) -> None:
        """Leave the step method as if no chain had begun."""
        self._chain.close()


def measured_cost(
    trial: TrialOfNUTS, started: float, size: Size, *, is_first: bool = False
) -> CostOfNUTS:
    """Let NUTS begin to tune, and measure its transitions once they have their usual length.

    Where that takes too long, their length is that of a well behaved posterior, at least.

    Parameters
    ----------
    trial : TrialOfNUTS
    started : float
        When its compilation began, by the performance counter.
    size : Size
        Size of the model.
    is_first : bool
        Whether no other set-up has begun.
    """
    most_seconds = _MOST_BEFORE_ALL if is_first else _MOST_SECONDS
    times: list[float] = []
    n_gradients, compilation = 0, 0.0
    for made in trial.first(_ALL):
        if not compilation:  # the first one compiles the rest
            compilation = time.perf_counter() - started
            continue
        times.append(made.seconds)
        n_gradients += made.n_gradients
        is_fast = len(times) == _USUAL and _usual(times) < LONG_RUN / TRANSITIONS
        if is_fast or sum(times) >= most_seconds:
            break
    seconds = _usual(times)
    if len(times) < _USUAL:
        usual = _gradients(size) * sum(times) / max(n_gradients, 1)
        seconds = max(seconds / _UNADAPTED, usual)
    return CostOfNUTS(seconds, compilation, is_measured=True)


def watched_cost(trial: TrialOfNUTS, cost: CostOfNUTS, most_seconds: float) -> CostOfNUTS:
    """Let NUTS tune for longer, and measure how many of its draws are effective.

    That takes a tenth of its run, unless its transitions get longer than they were.

    Parameters
    ----------
    trial : TrialOfNUTS
    cost : CostOfNUTS
        What that measured.
    most_seconds : float
        Processor time after which only the time of a transition is known.
    """
    times: list[float] = []
    for one in trial.first(WATCHED):
        times.append(one.seconds)
        if sum(times) > most_seconds:
            return cost._replace(per_draw=_usual(times))
    later = list(trial.first(WATCHED))[WATCHED // 2 :]
    kept = np.stack([one.place for one in later]).reshape(2, len(later) // 2, -1)  # of one chain
    each = np.split(kept, np.cumsum(trial.sizes)[:-1], axis=2)
    n_effective = min(effective_draws(own, IN_TAILS) for own in each)
    return cost._replace(per_draw=_usual(times), share_effective=n_effective / len(later))


def _transitions(step: AllRowsNUTS, point: dict[str, NDArray], n: int) -> Generator[_Transition]:
    """Transitions of a chain that tunes."""
    names, current = [variable.name for variable in step.vars], dict(point)
    step.setup_chain(np.random.default_rng(_SEED), n, 0)
    try:
        for _ in range(n):
            began = time.process_time()
            with np.errstate(over="ignore"):  # of a first step that is too long
                current, (statistics, *_) = step.step(current)
            seconds = time.process_time() - began
            place = np.concatenate([np.ravel(current[name]) for name in names])
            yield _Transition(place, seconds, statistics["tree_size"])
    finally:  # as if no chain had begun
        step.reset_tuning()
        restore_interrupts()


def _usual(times: list[float]) -> float:
    return float(np.mean(times[-_LAST:]))
