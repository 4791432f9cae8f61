"""Where rows live and how they are drawn, knowing no model."""

from pymc_austerity.rows.draws import AllRows, FreshRows, Windows
from pymc_austerity.rows.protocols import Block, RowDraw, RowSource, RowStream
from pymc_austerity.rows.shared import SharedRows

__all__ = [
    "AllRows",
    "Block",
    "FreshRows",
    "RowDraw",
    "RowSource",
    "RowStream",
    "SharedRows",
    "Windows",
]
