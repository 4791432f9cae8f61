"""Decisions that leave the posterior exactly invariant and read a few rows."""

from pymc_austerity.exact.change import change_along, largest_change, largest_change_of_cubic
from pymc_austerity.exact.decide import BoundViolatedError, ExactDecision, decide
from pymc_austerity.exact.directions import (
    Directions,
    any_direction,
    directions_of,
    nearest_directions,
)
from pymc_austerity.exact.expected import expected_rows, rows_of_pairs
from pymc_austerity.exact.firefly import FireflyDecision, decide_by_fireflies
from pymc_austerity.exact.groups import Grid, GridTotals, Groups, RowsOfCells, group_rows
from pymc_austerity.exact.inflation import Inflation
from pymc_austerity.exact.rounding import measured_rounding
from pymc_austerity.exact.select import SelectedRows, group_rates, rates_of, select_rows
from pymc_austerity.exact.thin import (
    RELATIVE,
    ROUNDING,
    Weight,
    fill_thinned,
    first_violation,
    log_weight,
    thinned,
)

__all__ = [
    "RELATIVE",
    "ROUNDING",
    "BoundViolatedError",
    "Directions",
    "ExactDecision",
    "FireflyDecision",
    "Grid",
    "GridTotals",
    "Groups",
    "Inflation",
    "RowsOfCells",
    "SelectedRows",
    "Weight",
    "any_direction",
    "change_along",
    "decide",
    "decide_by_fireflies",
    "directions_of",
    "expected_rows",
    "fill_thinned",
    "first_violation",
    "group_rates",
    "group_rows",
    "largest_change",
    "largest_change_of_cubic",
    "log_weight",
    "measured_rounding",
    "nearest_directions",
    "rates_of",
    "rows_of_pairs",
    "select_rows",
    "thinned",
]
