"""Decisions that leave the posterior exactly invariant and read a few rows."""

from pymc_austerity.exact.decide import ExactDecision, decide, expected_rows, rows_of_pairs
from pymc_austerity.exact.firefly import FireflyDecision, decide_by_fireflies
from pymc_austerity.exact.groups import (
    ROUNDING,
    Directions,
    Grid,
    GridTotals,
    GroupArrays,
    Groups,
    RowsOfCells,
    directions_of,
    group_rows,
    nearest_directions,
)
from pymc_austerity.exact.inflation import Inflation
from pymc_austerity.exact.select import (
    Candidates,
    bound_groups,
    candidates_of,
    change_along,
    expect,
    largest_change,
    largest_change_of_cubic,
    rates_of,
    select,
)
from pymc_austerity.exact.thin import (
    RELATIVE,
    BoundViolatedError,
    Weights,
    measured_rounding,
    weigh,
    weights_of_rows,
)
