"""Moves of models with groups: levels of factors in parallel, common entries, entries of priors."""

from pymc_austerity.levels.along import AlongWithLevels
from pymc_austerity.levels.exact_terms import ExactTerms
from pymc_austerity.levels.exchange import Exchange
from pymc_austerity.levels.expansion import Products, SparseExpansion
from pymc_austerity.levels.factor import LevelsOfFactor, Prior
from pymc_austerity.levels.jointly import JointBlock
from pymc_austerity.levels.kept import KeptAtAnchor
from pymc_austerity.levels.means import FreeMean
from pymc_austerity.levels.moves import move_levels
from pymc_austerity.levels.normals import LevelNormals, normals_of
from pymc_austerity.levels.pilot import expected_rows
from pymc_austerity.levels.posterior import CommonNormal, GroupedPosterior
from pymc_austerity.levels.reach import Reach, Span
from pymc_austerity.levels.rows import LevelRows, ResidualsByAddress
from pymc_austerity.levels.sequential import FEWEST_ROWS, SequentialSettings
from pymc_austerity.levels.shares import Shares, shares_of_sweeps
from pymc_austerity.levels.sweep import BlockUse, Sweep, SweepState
from pymc_austerity.levels.untouched import UntouchedEntries

__all__ = [
    "FEWEST_ROWS",
    "AlongWithLevels",
    "BlockUse",
    "CommonNormal",
    "ExactTerms",
    "Exchange",
    "FreeMean",
    "GroupedPosterior",
    "JointBlock",
    "KeptAtAnchor",
    "LevelNormals",
    "LevelRows",
    "LevelsOfFactor",
    "Prior",
    "Products",
    "Reach",
    "ResidualsByAddress",
    "SequentialSettings",
    "Shares",
    "Span",
    "SparseExpansion",
    "Sweep",
    "SweepState",
    "UntouchedEntries",
    "expected_rows",
    "move_levels",
    "normals_of",
    "shares_of_sweeps",
]
