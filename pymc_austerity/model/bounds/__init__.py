"""Bounds on the third derivatives of rows, by interval arithmetic on their scalar function."""

from pymc_austerity.model.bounds.cell_bounds import CellBounds
from pymc_austerity.model.bounds.constants import (
    NoBoundError,
    are_cheap,
    third_derivative_constants,
)
from pymc_austerity.model.bounds.scalar_function import ScalarFunction, scalar_function
