"""Where rows live and how they are drawn, knowing no model."""

from pymc_austerity.rows.draws import AllRows, FreshRows, Windows
from pymc_austerity.rows.protocols import Block, RowDraw, RowSource, RowStream
from pymc_austerity.rows.shared import SharedRows
from pymc_austerity.rows.strata import Strata, StratifiedWindows, strata_by_score

__all__ = [
    "AllRows",
    "Block",
    "FreshRows",
    "RowDraw",
    "RowSource",
    "RowStream",
    "SharedRows",
    "Strata",
    "StratifiedWindows",
    "Windows",
    "strata_by_score",
]
