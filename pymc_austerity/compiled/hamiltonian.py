"""Hamiltonian trajectories in compiled code, the same for all models."""

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from pymc_austerity.compiled.calls import call_with_gradient
from pymc_austerity.proposals import hamiltonian

__all__ = ["center_and_scale", "walk"]


@overload(hamiltonian.evaluate, jit_options={"error_model": "numpy"})
def _evaluate(exact: Any, point: Any) -> Any:
    """The exact part is known by the address of a function of two addresses."""
    if not isinstance(exact, types.Integer):
        return None

    def by_address(exact: Any, point: Any) -> Any:
        gradient = np.empty(point.size)
        value = call_with_gradient(exact, point.ctypes.data, gradient.ctypes.data)
        return value, gradient

    return by_address


center_and_scale = njit(cache=True, error_model="numpy")(hamiltonian.center_and_scale)
"""See `pymc_austerity.proposals.hamiltonian`."""

walk = njit(cache=True, error_model="numpy")(hamiltonian.walk)
"""See `pymc_austerity.proposals.hamiltonian`."""
