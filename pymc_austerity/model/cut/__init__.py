"""A graph cut to rows: rows are pushed from the log-likelihood down to the data."""

from pymc_austerity.model.cut import rules  # noqa: F401 (registers the rules)
from pymc_austerity.model.cut.cut import Cut, RowLeaf
from pymc_austerity.model.cut.examples import NO_EXAMPLES, Examples, array_of
from pymc_austerity.model.cut.known import Known, static_data
from pymc_austerity.model.cut.refusal import CannotCut
from pymc_austerity.model.cut.registry import rows_of
from pymc_austerity.model.cut.scope import refuse_work_on_all_rows

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
