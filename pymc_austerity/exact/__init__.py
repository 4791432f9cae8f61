"""Decisions that leave the posterior exactly invariant and read a few rows."""

from pymc_austerity.exact.decide import (
    RELATIVE,
    BoundViolatedError,
    ExactDecision,
    FireflyDecision,
    Weights,
    decide,
    decide_by_fireflies,
    expected_rows,
    measured_rounding,
    rows_of_pairs,
    weigh,
    weights_of_rows,
)
from pymc_austerity.exact.groups import (
    ROUNDING,
    Directions,
    Grid,
    GridTotals,
    GroupArrays,
    Groups,
    RowsOfCells,
    group_rows,
    nearest_directions,
)
from pymc_austerity.exact.inflation import MOST_RATIOS, Inflation, thinning
from pymc_austerity.exact.select import (
    Candidates,
    bound_groups,
    candidates_of,
    change_along,
    expect,
    largest_change,
    largest_change_of_cubic,
    number_of_candidates,
    rates_of,
    select,
)
