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
from pymc_austerity.rows.passes import ArrayRows, ReorderedRows, blocks_of, sum_over_rows
from pymc_austerity.rows.protocols import (
    LARGEST_BLOCK,
    Block,
    RowDraw,
    RowSource,
    RowStream,
    SampledRows,
)
from pymc_austerity.rows.records import Reading, Store, StoredRows, reader
from pymc_austerity.rows.shared import SharedRows
from pymc_austerity.rows.stored import store_by_label
