"""Hamiltonian trajectories in compiled code, the same for all models."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_of_prior, call_with_gradient
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
