"""Rows that stay where they are: arrays, files, tables and collections, read block by block."""

from pymc_austerity.sources.blocks import (
    Piece,
    block_ranges,
    blocks_of_sources,
    read_ahead,
    refuse_unequal_lengths,
)
from pymc_austerity.sources.columns import Columns
from pymc_austerity.sources.opening import open_source
from pymc_austerity.sources.passes import (
    mapped_in_order,
    pass_over,
    passes_run_by,
    usual_threads,
)
from pymc_austerity.sources.protocols import Source, identity_of

__all__ = [
    "Columns",
    "Piece",
    "Source",
    "block_ranges",
    "blocks_of_sources",
    "identity_of",
    "mapped_in_order",
    "open_source",
    "pass_over",
    "passes_run_by",
    "read_ahead",
    "refuse_unequal_lengths",
    "usual_threads",
]
