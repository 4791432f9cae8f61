"""Set-up of models with groups."""

from pymc_austerity.setup.coordinates import centered_problem, grouped_problem
from pymc_austerity.setup.levels.build import (
    MOST_AT_ONCE,
    BuiltGroups,
    GroupedTarget,
    NoFactorError,
    build_grouped,
    build_groups,
)
from pymc_austerity.setup.levels.factors import NoGroupsError
