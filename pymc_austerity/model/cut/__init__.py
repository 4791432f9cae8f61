"""A graph cut to rows: rows are pushed from the log-likelihood down to the data."""

from pymc_austerity.model.cut import rules_elementwise, rules_indexing, rules_shapes
from pymc_austerity.model.cut.cut import CannotCut, Cut, RowLeaf, refuse_work_on_all_rows
from pymc_austerity.model.cut.known import NO_EXAMPLES, Examples, Known, array_of, static_data
