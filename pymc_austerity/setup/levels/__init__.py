"""Set-up of models with groups."""

from pymc_austerity.setup.coordinates import Coordinates, centered_problem, grouped_problem
from pymc_austerity.setup.levels.build import (
    FEWEST_PRODUCTS,
    MOST_AT_ONCE,
    GroupedTarget,
    NoFactorError,
    NoGroupsError,
    build_grouped,
)

__all__ = [
    "FEWEST_PRODUCTS",
    "MOST_AT_ONCE",
    "Coordinates",
    "GroupedTarget",
    "NoFactorError",
    "NoGroupsError",
    "build_grouped",
    "centered_problem",
    "grouped_problem",
]
