"""Set-up of models with groups."""

from pymc_austerity.setup.levels.build import GroupedTarget, NoGroupsError, build_grouped

__all__ = ["GroupedTarget", "NoGroupsError", "build_grouped"]
