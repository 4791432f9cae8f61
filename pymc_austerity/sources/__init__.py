"""Rows that stay where they are: arrays, files, tables and collections, read block by block."""

from pymc_austerity.sources.columns import Columns
from pymc_austerity.sources.opening import open_source
from pymc_austerity.sources.passes import (
    Piece,
    Source,
    block_ranges,
    pass_over,
    passes_run_by,
    read_ahead,
    refuse_unequal_lengths,
    take,
    usual_threads,
)
