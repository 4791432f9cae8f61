"""The rules: for every kind of operation, how rows of its output follow from rows of its inputs.

A rule is an identity ``f(x)[rows] == f'(x[rows])``. What is made of rules is right by construction,
and an operation without a rule is refused.
"""

from functools import singledispatch
from typing import Any

from pymc_austerity._pymc import Variable
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut, in_words

__all__ = ["rows_of"]


@singledispatch
def rows_of(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """Rows of an output of an operation, from rows of its inputs.

    Parameters
    ----------
    op : Op
        The operation; rules are registered for its class.
    cut : CutContext
        Takes rows of inputs (`take`), or keeps inputs that have no rows (`keep`).
    wanted : Wanted
        Output, axis and rows.

    Raises
    ------
    CannotCut
        There is no rule, or the operation mixes rows.
    """
    raise CannotCut(f"{in_words(op)} may mix the rows")
