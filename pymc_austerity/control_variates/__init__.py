"""The point of the Taylor expansion of the likelihood, and the rows that it fits badly."""

from pymc_austerity.control_variates.anchor import Anchor, NoAnchorError, find_anchor
from pymc_austerity.control_variates.influence import (
    FirstLookSizes,
    Influence,
    LargestScores,
    ResidualFunction,
    cheapest_first_look,
    differences_of_all,
    influence_of_all,
    influence_scores,
)
from pymc_austerity.control_variates.mean import few_directions, posterior_mean, where_zero
from pymc_austerity.control_variates.modes import (
    Mode,
    Modes,
    conditional_mode,
    find_modes,
    heaviest_modes,
)
from pymc_austerity.control_variates.search import Differentiable, RowDensity
