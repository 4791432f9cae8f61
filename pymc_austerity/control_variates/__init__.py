"""The point of the Taylor expansion of the likelihood, and the rows that it fits badly."""

from pymc_austerity.control_variates.anchor import Anchor, NoAnchorError, ThirdOrder, find_anchor
from pymc_austerity.control_variates.influence import (
    FirstLook,
    Influence,
    LargestScores,
    ResidualFunction,
    differences_of_all,
    expected_rows,
    first_look_sizes,
    influence_of_all,
    influence_scores,
    sizes_of_largest,
)
from pymc_austerity.control_variates.mode import Differentiable, RowDensity
from pymc_austerity.control_variates.modes import Mode, Modes, find_modes

__all__ = [
    "Anchor",
    "Differentiable",
    "FirstLook",
    "Influence",
    "LargestScores",
    "Mode",
    "Modes",
    "NoAnchorError",
    "ResidualFunction",
    "RowDensity",
    "ThirdOrder",
    "differences_of_all",
    "expected_rows",
    "find_anchor",
    "find_modes",
    "first_look_sizes",
    "influence_of_all",
    "influence_scores",
    "sizes_of_largest",
]
