"""Terms of the exact part by the levels of a factor, and its derivatives for some entries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable, ancestors, grad, join_nonshared_inputs, stabilized
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.interpret import interpreted
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["LevelTerms", "NotByLevelError", "PartialDerivatives", "level_terms", "partial_exact"]

_SMALL_STEP = 1e-4
"""Of differences of gradients."""


class NotByLevelError(ValueError):
    """A term of the exact part is not a sum over levels; the message names the variables."""


class LevelTerms(NamedTuple):
    """What the exact part says of each level of a factor.

    Attributes
    ----------
    terms : callable
        From a raveled point to a float array, shape (G,), nats.
    derivatives : callable
        From a raveled point to gradients, shape (G, q), and Hessians, shape (G, q, q), with respect
        to the entries of each level.
    given : int array
        Other entries that the terms depend on.
    is_quadratic : bool
        Whether they are quadratic functions of the entries of a level, as those of normal
        distributions are.
    """

    terms: Callable[[NDArray], NDArray[np.float64]]
    derivatives: Callable[[NDArray], tuple[NDArray[np.float64], NDArray[np.float64]]]
    given: NDArray[np.int64]
    is_quadratic: bool


class PartialDerivatives(NamedTuple):
    """Derivatives of the exact part with respect to some entries.

    Attributes
    ----------
    gradient : callable
        From a raveled point to a float array, shape (n,).
    hessian : callable
        From a raveled point to derivatives of that with respect to all entries, shape (n, d).
    given : int array
        Other entries that the terms with these ones depend on.
    """

    gradient: Callable[[NDArray], NDArray[np.float64]]
    hessian: Callable[[NDArray], NDArray[np.float64]]
    given: NDArray[np.int64]


@dataclass(frozen=True)
class _First:
    """First result of a function that returns a list."""

    function: Callable[..., list]

    def __call__(self, point: NDArray) -> Any:
        return self.function(point)[0]


@dataclass(frozen=True)
class _ByLevel:
    """Gradients, and Hessians by differences of gradients.

    Levels are independent, so that an entry of all levels is moved at once. A step of 1 is exact
    for quadratic functions; what proposals make of others need not be exact.
    """

    slope: Callable[..., list]
    entries: NDArray[np.int64]
    step: float

    def __call__(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gradients = self.slope(point)[0]
        columns = []
        for own in self.entries.T:
            there = point.copy()
            there[own] += self.step
            columns.append((self.slope(there)[0] - gradients) / self.step)
        hessians = np.stack(columns, axis=2)
        return gradients, 0.5 * (hessians + hessians.swapaxes(1, 2))


def level_terms(
    likelihood: RowLikelihood,
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    entries: NDArray[np.int64],
    start: NDArray,
) -> LevelTerms:
    """Write the exact part as a sum over the levels of a factor and a rest without them.

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.
    variables : sequence of variables
        Value variables, in the order of the raveled vector.
    point : dict of str to array
        Their values, for their shapes.
    entries : int array, shape (G, q)
        Positions of the entries of each level.
    start : array, shape (d,)
        Where it is verified: levels are moved by turns, and only their own terms may change.

    Raises
    ------
    NotByLevelError
        Some term is none of a level.
    """
    terms, theta = _terms_of(likelihood, variables, point, entries)
    values = _made(likelihood, theta, terms)
    axes = _axes(values, entries, start)
    total = sum(term.sum(axis=_others(term, axis)) for term, axis in zip(terms, axes, strict=True))
    slope = grad(stabilized(total.sum()), theta, disconnected_inputs="ignore")
    of_levels = _First(_made(likelihood, theta, [total]))
    own = compiled(likelihood.model, [theta], [slope[entries].astype("float64")], None)
    derivatives = _ByLevel(own, entries, 1.0)
    is_quadratic = _is_quadratic(of_levels, derivatives, entries, start)
    if not is_quadratic:  # evaluated at every step
        of_levels = _First(compiled(likelihood.model, [theta], [total.astype("float64")], None))
        derivatives = _ByLevel(own, entries, _SMALL_STEP)
    given = _given(_made(likelihood, theta, [slope]), entries, start)
    return LevelTerms(of_levels, derivatives, given, is_quadratic)


def partial_exact(
    likelihood: RowLikelihood,
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    entries: NDArray[np.int64],
    start: NDArray,
) -> PartialDerivatives:
    """Derivatives of the exact part with respect to some entries, from the terms that have them.

    Parameters are those of `level_terms`, with entries of shape (n,).
    """
    terms, theta = _terms_of(likelihood, variables, point, entries)
    if not terms:
        nothing = np.zeros((entries.size, start.size))
        return PartialDerivatives(lambda at: nothing[:, 0], lambda at: nothing, entries[:0])
    value = stabilized(sum(term.sum() for term in terms))
    slope = grad(value, theta, disconnected_inputs="ignore")
    every = _made(likelihood, theta, [slope])

    def hessian(at: NDArray) -> NDArray[np.float64]:
        rows = np.empty((entries.size, at.size))
        for number, entry in enumerate(entries):
            step = np.zeros_like(at)
            step[entry] = _SMALL_STEP
            rows[number] = (every(at + step)[0] - every(at - step)[0]) / (2.0 * _SMALL_STEP)
        return rows

    gradient = _First(_made(likelihood, theta, [slope[entries]]))
    return PartialDerivatives(gradient, hessian, _given(every, entries, start))


def _terms_of(
    likelihood: RowLikelihood,
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    entries: NDArray[np.int64],
) -> tuple[list[Variable], Variable]:
    """Terms that depend on variables with some of the entries, in terms of one raveled vector."""
    ends = np.cumsum([np.size(point[str(v.name)]) for v in variables])
    own = {variables[k] for k in np.unique(np.searchsorted(ends, entries.ravel(), side="right"))}
    chosen = [term for term in likelihood.exact_terms if own & set(ancestors([term]))]
    if not chosen:
        return [], None
    return join_nonshared_inputs(dict(point), chosen, list(variables), {})


def _made(likelihood: RowLikelihood, theta: Variable, outputs: list) -> Callable[..., list]:
    exact = [output.astype("float64") for output in outputs]
    model = likelihood.model
    return interpreted(model, [theta], exact) or compiled(model, [theta], exact, None)


def _others(term: Variable, axis: int) -> list[int]:
    return [k for k in range(term.type.ndim) if k != axis]


def _axes(values: Callable[..., list], entries: NDArray[np.int64], start: NDArray) -> list[int]:
    """Axis of the levels in each term."""
    n_levels, rng = len(entries), np.random.default_rng(0)
    before = [np.asarray(value) for value in values(start)]
    fitting = [
        [axis for axis, length in enumerate(value.shape) if length == n_levels] for value in before
    ]
    every = np.arange(n_levels)
    for digit in range(max(int(every[-1]).bit_length(), 1)):
        is_moved = (every >> digit) & 1 == 1
        there = start.copy()
        there[entries[is_moved]] += rng.uniform(0.1, 0.3, size=entries[is_moved].shape)
        for number, after in enumerate(values(there)):
            changed = np.asarray(after) != before[number]
            fitting[number] = [
                axis for axis in fitting[number] if not _of(changed, axis)[~is_moved].any()
            ]
    if not all(fitting):
        raise NotByLevelError("a prior is not a sum over the levels")
    return [axes[0] for axes in fitting]


def _of(changed: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    """Whether anything of a level changed."""
    return np.asarray(changed.any(axis=tuple(k for k in range(changed.ndim) if k != axis)))


def _is_quadratic(
    terms: Callable[[NDArray], NDArray],
    derivatives: Callable[[NDArray], tuple[NDArray, NDArray]],
    entries: NDArray[np.int64],
    start: NDArray,
) -> bool:
    """Whether second-order expansions are right far away, wherever the other entries are."""
    rng = np.random.default_rng(2)
    for distance in (1.0, 10.0, 100.0):
        here = start + rng.uniform(-0.5, 0.5, size=start.size)
        moves = distance * rng.standard_normal(entries.shape)
        there = here.copy()
        there[entries] += moves
        gradients, hessians = derivatives(here)
        curved = np.einsum("gij,gi,gj->g", hessians, moves, moves)
        expected = (gradients * moves).sum(axis=1) + 0.5 * curved
        if not np.allclose(terms(there) - terms(here), expected, rtol=1e-8, atol=1e-8):
            return False
    return True


def _given(
    slope: Callable[[NDArray], list[NDArray]], entries: NDArray[np.int64], start: NDArray
) -> NDArray[np.int64]:
    """Other entries whose slope is not zero at points nearby."""
    rng = np.random.default_rng(1)
    nearby = [start + rng.uniform(-0.3, 0.3, size=start.size) for _ in range(2)]
    depends = np.any([np.asarray(slope(point)[0]) != 0.0 for point in nearby], axis=0)
    depends[entries] = False
    return np.flatnonzero(depends)
