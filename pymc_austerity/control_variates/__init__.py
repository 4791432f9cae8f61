"""The point of the Taylor expansion of the likelihood, and the rows that it fits badly."""

from pymc_austerity.control_variates.allocation import (
    FirstLook,
    expected_rows,
    first_look_sizes,
    sizes_of_largest,
)
from pymc_austerity.control_variates.anchor import Anchor, NoAnchorError, find_anchor
from pymc_austerity.control_variates.influence import (
    Influence,
    LargestScores,
    differences_of_all,
    influence_of_all,
    influence_scores,
)
from pymc_austerity.control_variates.modes import Mode, Modes, find_modes
from pymc_austerity.control_variates.residuals import ResidualFunction
from pymc_austerity.control_variates.row_density import Differentiable, RowDensity
from pymc_austerity.control_variates.third_order import ThirdOrder

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
