"""A graph cut to rows: rows are pushed from the log-likelihood down to the data."""

from pymc_austerity.model.cut import rules  # noqa: F401 (registers the rules)
from pymc_austerity.model.cut.cut import Cut, RowLeaf, refuse_work_on_all_rows
from pymc_austerity.model.cut.known import NO_EXAMPLES, Examples, Known, array_of, static_data
from pymc_austerity.model.cut.protocols import CannotCut, rows_of

__all__ = [
    "NO_EXAMPLES",
    "CannotCut",
    "Cut",
    "Examples",
    "Known",
    "RowLeaf",
    "array_of",
    "refuse_work_on_all_rows",
    "rows_of",
    "static_data",
]
