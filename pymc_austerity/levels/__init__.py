"""Moves of models with groups: levels of factors in parallel, common entries, entries of priors."""

from pymc_austerity.levels.factor import LevelNormals, LevelsOfFactor, Prior, normals_of
from pymc_austerity.levels.joint import JointBlock, PartlyNonCentered, Shares, shares_of_sweeps
from pymc_austerity.levels.moves import NestedLevels, Ridges, move_levels
from pymc_austerity.levels.posterior import (
    CommonNormal,
    FreeMean,
    GivenPrior,
    GroupedPosterior,
    ResidualsOfRows,
    Unread,
)
from pymc_austerity.levels.prior_only import Exchange, PriorOnlyEntries, VectorFields
from pymc_austerity.levels.rows import LevelRows, Measured, Span
from pymc_austerity.levels.sweep import BlockUse, Pilot, Sweep, SweepState, pilot_sweeps
from pymc_austerity.levels.terms import KeptAtAnchor, Products, RowFreeTerms, SparseExpansion
