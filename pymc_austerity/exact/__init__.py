"""Decisions that leave the posterior exactly invariant and read a few rows."""

from pymc_austerity.exact.change import change_along, largest_change, largest_change_of_cubic
from pymc_austerity.exact.decide import ExactDecision, decide
from pymc_austerity.exact.directions import (
    Directions,
    any_direction,
    directions_of,
    nearest_directions,
)
from pymc_austerity.exact.expected import expected_rows, rows_of_pairs
from pymc_austerity.exact.firefly import FireflyDecision, decide_by_fireflies
from pymc_austerity.exact.groups import (
    ROUNDING,
    Grid,
    GridTotals,
    GroupArrays,
    Groups,
    RowsOfCells,
    group_rows,
)
from pymc_austerity.exact.inflation import Inflation
from pymc_austerity.exact.rounding import measured_rounding
from pymc_austerity.exact.select import (
    Candidates,
    bound_groups,
    candidates_of,
    expect,
    rates_of,
    select,
)
from pymc_austerity.exact.thin import (
    RELATIVE,
    BoundViolatedError,
    Weights,
    weigh,
    weights_of_rows,
)
