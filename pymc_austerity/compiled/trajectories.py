"""Transitions of a chain of Hamiltonian moves in one compiled function, the same for all models."""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from pymc_austerity.compiled.block import decide_by
from pymc_austerity.compiled.calls import call_of_prior, call_with_gradient
from pymc_austerity.compiled.exact import ACCEPTED, REJECTED, VIOLATED
from pymc_austerity.parts import reals
from pymc_austerity.proposals import hamiltonian


class KnownByAddress(NamedTuple):
    """The row-free part, and m rows of k linear predictors, for compiled code.

    Attributes
    ----------
    exact : int
        Address of the row-free part; see `pymc_austerity.model.DensityGradient`.
    slopes : int
        Address of the rows as functions of their predictors; see `pymc_austerity.model.RowSlopes`.
    table : int array
        Of the rows.
    design : float array, shape (k m, d)
        Predictors as products with the point, those of the first predictor first.
    offsets : float array, shape (k m,)
    """

    exact: int
    slopes: int
    table: NDArray[np.int64]
    design: NDArray[np.float64]
    offsets: NDArray[np.float64]


@overload(hamiltonian.evaluate, jit_options={"error_model": "numpy"})
def _evaluate(exact: Any, point: Any) -> Any:
    """The row-free part is known by the address of a function of two addresses."""

    def by_address(exact: Any, point: Any) -> Any:
        gradient = np.empty(point.size)
        value = call_with_gradient(exact, point.ctypes.data, gradient.ctypes.data)
        return value, gradient

    def with_rows(exact: Any, point: Any) -> Any:
        gradient = np.empty(point.size)
        value = call_with_gradient(exact.exact, point.ctypes.data, gradient.ctypes.data)
        etas, n_rows = np.dot(exact.design, point) + exact.offsets, exact.table[0]
        found = np.empty(n_rows + etas.size)
        call_of_prior(exact.slopes, etas.ctypes.data, found.ctypes.data, exact.table.ctypes.data)
        return value + found[:n_rows].sum(), gradient + np.dot(found[n_rows:], exact.design)

    if isinstance(exact, types.Integer):
        return by_address
    return with_rows if isinstance(exact, types.NamedTuple) else None


center_and_scale = njit(cache=True, error_model="numpy")(hamiltonian.center_and_scale)
"""See `pymc_austerity.proposals.hamiltonian`."""

walk = njit(cache=True, error_model="numpy")(hamiltonian.walk)
"""See `pymc_austerity.proposals.hamiltonian`."""

kind_of_move = njit(cache=True, error_model="numpy")(hamiltonian.kind_of_move)
"""See `pymc_austerity.proposals.hamiltonian`."""


class CompiledTrajectories(NamedTuple):
    """Trajectories on a surrogate of the posterior, in a state that no longer changes.

    Attributes
    ----------
    exact : int or KnownByAddress
        What is known without an expansion.
    anchor, gradient, hessian, scaled : arrays
        As in `pymc_austerity.proposals.hamiltonian.log_density`.
    beyond : float array, shape (d, d)
        Hessian of the expansion that decisions use, minus that of the surrogate.
    root : float array, shape (d, d)
        Of the inverse of the metric.
    step_size, time : float
    n_trajectories : int
    """

    exact: Any
    anchor: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    scaled: NDArray[np.intp]
    beyond: NDArray[np.float64]
    root: NDArray[np.float64]
    step_size: float
    time: float
    n_trajectories: int

    @property
    def size(self) -> int:
        """Dimension, d."""
        return self.anchor.size

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Step size of the only kind of move."""
        return np.array([self.step_size])


@numba.njit(cache=True, error_model="numpy")
def _end(its: CompiledTrajectories, current: NDArray, rng: Any) -> tuple[NDArray, int]:
    """The point at the end of the trajectories, and how many of them were accepted."""
    kind = kind_of_move(its.step_size, its.time, its.n_trajectories, rng)
    known, scaled, place = (its.anchor, its.gradient, its.hessian, its.scaled), its.scaled, current
    if scaled.size > 0:
        center, scale = center_and_scale(its.exact, current, its.anchor, its.hessian, scaled)
        place = current.copy()
        for j in range(scaled.size):
            place[scaled[j]] = (current[scaled[j]] - center[j]) / scale[j]
    end, _, n_accepted = walk(its.exact, known, place, its.root, *kind, rng)
    if scaled.size > 0 and n_accepted > 0:
        center, scale = center_and_scale(its.exact, end, its.anchor, its.hessian, scaled)
        for j in range(scaled.size):
            end[scaled[j]] = center[j] + scale[j] * end[scaled[j]]
    return end, n_accepted


@numba.njit(cache=True, error_model="numpy", nogil=True)
def transitions_by_trajectories(
    its: CompiledTrajectories,
    decisions: Any,
    start: NDArray[np.float64],
    rng: np.random.Generator,
    audits: np.random.Generator,
    points: NDArray[np.float64],
    statistics: NDArray[np.float64],
) -> int:
    """Make transitions; what is known cancels, and the rows that are sampled decide.

    Parameters
    ----------
    its, decisions
        What moves, and what decides, as `addressed` has it.
    start : float array, shape (d,)
        Where the chain is.
    rng, audits : numpy.random.Generator
        Of the chain, and of what is checked.
    points, statistics : float arrays, shapes (n, d) and (n, 8)
        Where the chain is after each transition, and what each took; see `STATISTICS`.

    Returns
    -------
    int
        Transitions made: fewer where one of them violates a bound.
    """
    current = start.copy()
    for t in range(len(points)):
        statistics[t] = 0.0
        statistics[t, 4] = math.nan
        proposed, n_accepted = _end(its, current, rng)
        verdict = REJECTED
        if n_accepted > 0:
            moved, about = proposed - current, (proposed - its.anchor) + (current - its.anchor)
            log_ratio = 0.5 * np.dot(moved, np.dot(its.beyond, about))
            if math.isfinite(log_ratio):
                verdict = decide_by(
                    decisions,
                    reals(proposed.ctypes.data),
                    reals(current.ctypes.data),
                    log_ratio,
                    rng,
                    audits,
                    reals(statistics[t].ctypes.data),
                )
        if verdict == VIOLATED:
            return t
        statistics[t, 0] = verdict
        if verdict == ACCEPTED:
            current = proposed
        points[t] = current
    return len(points)
