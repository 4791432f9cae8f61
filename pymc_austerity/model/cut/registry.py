"""The rules: for every kind of operation, how rows of its output are had from rows of its inputs.

A rule is an identity ``f(x)[rows] == f'(x[rows])``. What is made of rules is right by construction,
and an operation without a rule is refused.
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from pymc_austerity._pymc import Variable
from pymc_austerity.model.cut.refusal import CannotCut, in_words
from pymc_austerity.model.cut.selection import Selection

if TYPE_CHECKING:
    from pymc_austerity.model.cut.cut import Cut

__all__ = ["Wanted", "rows_of"]


@dataclass(frozen=True)
class Wanted:
    """Which rows of which variable.

    Attributes
    ----------
    output : Variable
        One output of the operation.
    axis : int
        Its axis that carries the rows.
    selection : Selection
        The rows of that axis.
    """

    output: Variable
    axis: int
    selection: Selection

    @property
    def node(self) -> Any:
        """The application of the operation."""
        return self.output.owner

    @property
    def index(self) -> int:
        """Which of the outputs of the operation is wanted."""
        return self.node.outputs.index(self.output)

    @property
    def ndim(self) -> int:
        """Number of axes of the output."""
        return self.output.type.ndim


@singledispatch
def rows_of(op: Any, cut: "Cut", wanted: Wanted) -> Variable:
    """Rows of an output of an operation, from rows of its inputs.

    Parameters
    ----------
    op : Op
        The operation; rules are registered for its class.
    cut : Cut
        Takes rows of inputs (`Cut.take`), or keeps inputs that have no rows (`Cut.keep`).
    wanted : Wanted
        Output, axis and rows.

    Raises
    ------
    CannotCut
        There is no rule, or the operation mixes rows.
    """
    raise CannotCut(f"{in_words(op)} may mix the rows")
