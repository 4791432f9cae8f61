"""Decisions that leave the posterior exactly invariant and read a few rows."""

from pymc_austerity.exact.change import largest_change, largest_change_of_cubic
from pymc_austerity.exact.decide import BoundViolatedError, ExactDecision, decide
from pymc_austerity.exact.expected import expected_rows
from pymc_austerity.exact.groups import Groups, group_rows
from pymc_austerity.exact.select import select_rows
from pymc_austerity.exact.thin import log_weight

__all__ = [
    "BoundViolatedError",
    "ExactDecision",
    "Groups",
    "decide",
    "expected_rows",
    "group_rows",
    "largest_change",
    "largest_change_of_cubic",
    "log_weight",
    "select_rows",
]
