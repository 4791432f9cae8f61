"""The point of the Taylor expansion of the likelihood, and the rows that it fits badly."""

from pymc_austerity.control_variates.anchor import Anchor, NoAnchorError, find_anchor
from pymc_austerity.control_variates.influence import (
    FirstLookLimits,
    Influence,
    LargestScores,
    ResidualFunction,
    differences_of_all,
    first_look_sizes,
    influence_of_all,
    influence_scores,
    rows_of_decisions,
    sizes_of_largest,
)
from pymc_austerity.control_variates.mean import posterior_mean
from pymc_austerity.control_variates.mode import Differentiable, RowDensity
from pymc_austerity.control_variates.modes import Modes, find_modes
