"""How rows are stored and drawn, whatever the model."""

from pymc_austerity.rows.draws import (
    AllRows,
    FreshRows,
    StratifiedWindows,
    Windows,
    equal_total_score,
    in_order,
    in_random_order,
)
from pymc_austerity.rows.passes import (
    LARGEST_BLOCK,
    ArrayRows,
    Block,
    ReorderedRows,
    RowDraw,
    RowSource,
    SampledRows,
    blocks_of,
    sum_over_rows,
)
from pymc_austerity.rows.shared import SharedRows
from pymc_austerity.rows.stored import Reading, Store, StoredRows, reader, store_by_label
