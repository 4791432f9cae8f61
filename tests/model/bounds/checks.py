"""Log-densities as PyMC writes them, with checks of parameters that concern each row by itself."""

import numpy as np

from pymc_austerity._pymc import Constant, ancestors
from pymc_austerity.model import RowLeaf
from pymc_austerity.model.predictors.linear import GraphFacts
from pymc_austerity.model.predictors.rewrites import checked_by_row


def by_row(graph):
    """The same, with -inf for a row that fails a check, as in what `find_predictors` returns."""
    inputs = [v for v in ancestors([graph]) if v.owner is None and not isinstance(v, Constant)]
    facts = GraphFacts({}, [RowLeaf(v, np.ones(2, dtype=v.dtype)) for v in inputs])
    return checked_by_row(graph, facts)
