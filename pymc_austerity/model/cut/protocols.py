"""The input of a rule, and the part of the cut that it may use."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.cut.known import Known
from pymc_austerity.model.cut.selection import Selection, Selections

__all__ = ["CutContext", "Wanted"]


@dataclass(frozen=True)
class Wanted:
    """A variable, and the rows of it that are to be taken.

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


class CutContext(Protocol):
    """The part of `Cut` that rules use.

    Attributes
    ----------
    known : Known
        Dependence on parameters, values and shapes.
    n_rows : int
        Number of rows of the whole data.
    batch_length : scalar variable
        Number of rows in the batch.
    selections : Selections
        Which rows of inner variables are read.
    """

    known: Known
    n_rows: int
    batch_length: Variable
    selections: Selections

    def take(self, variable: Variable, axis: int, selection: Selection = ...) -> Variable:
        """Cut a variable to the rows of the batch along one of its axes."""
        ...

    def take_or_none(self, variable: Variable, axis: int, selection: Selection) -> Variable | None:
        """Cut a variable, or None where that is impossible."""
        ...

    def take_or_keep(self, variable: Variable, axis: int, selection: Selection) -> Variable:
        """Cut an operand to rows, or keep it where it is broadcast along the rows."""
        ...

    def keep(self, variable: Variable) -> Variable:
        """Note that a variable is evaluated in full."""
        ...

    def leaf(self, array: NDArray, name: str, key: Hashable, is_computed: bool = ...) -> Variable:
        """Placeholder of the batch's rows of an array; the same one for the same key."""
        ...

    def mask(self, rows: NDArray, name: str, key: Hashable, like: Wanted) -> Variable:
        """Placeholder of a truth value per row, broadcastable to what is wanted."""
        ...
