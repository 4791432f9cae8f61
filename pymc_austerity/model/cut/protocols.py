"""What a rule is given, how it refuses, and the registry of rules.

A rule is an identity ``f(x)[rows] == f'(x[rows])``. What is made of rules is right by construction,
and an operation without a rule is refused.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ArgSortOp,
    Blockwise,
    CAReduce,
    CumOp,
    Dot,
    Elemwise,
    LogSoftmax,
    Scan,
    Softmax,
    SortOp,
    Variable,
)
from pymc_austerity.model.cut.known import Known

__all__ = [
    "WHOLE",
    "CannotCut",
    "CutContext",
    "Selection",
    "Selections",
    "Wanted",
    "operation_in_words",
    "output_rows",
]

_WORDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (Scan, "a loop (scan)"),
    (CumOp, "a cumulative sum or product"),
    ((SortOp, ArgSortOp), "a sort"),
    (Softmax, "a softmax"),
    (LogSoftmax, "a log-softmax"),
    (CAReduce, "a sum, mean or other reduction"),
    (Dot, "a matrix product"),
    (Elemwise, "an element-wise operation"),
)


class CannotCut(Exception):
    """Some rows of a variable cannot be computed without its other rows.

    Parameters
    ----------
    reason : str
        Part of a sentence, to follow "because": names the operation in words.
    remedy : str
        What to do; empty for the usual.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def operation_in_words(op: Any) -> str:
    """Name an operation: "a softmax" rather than its class where there is a word for it."""
    op = op.core_op if isinstance(op, Blockwise) else op
    if "linalg" in type(op).__module__:
        return f"the linear algebra operation {type(op).__name__}"
    for classes, words in _WORDS:
        if isinstance(op, classes):
            return words
    return f"the operation {type(op).__name__}"


@dataclass(frozen=True, eq=False)
class Selection:
    """Row ``i`` of the log-likelihood reads row ``rows[i]`` of an inner variable.

    Compared by identity, so that selections are cheap keys of a memo.

    Parameters
    ----------
    rows : int array, shape (n_rows,), or None
        None means ``rows[i] == i``.
    """

    rows: NDArray[np.int64] | None


WHOLE = Selection(None)
"""Every row reads the row of the same number."""


class Selections:
    """Selections made so far: the same one is made once.

    Parameters
    ----------
    n_rows : int
        Rows there are.
    of_examples : bool
        Whether these are a few rows of many: then every row reads the row of the same number.
    """

    def __init__(self, n_rows: int, *, of_examples: bool = False) -> None:
        self.n_rows = n_rows
        self._of_examples = of_examples
        self._made: dict[Hashable, Selection] = {}

    def rows(self, selection: Selection) -> NDArray[np.int64]:
        """Rows read, spelled out, shape (n_rows,)."""
        return np.arange(self.n_rows) if selection.rows is None else selection.rows

    def new(self, rows: NDArray, key: Hashable) -> Selection:
        """Return the selection of these rows; the same for the same key."""
        if self._of_examples:
            raise CannotCut("it picks, joins or repeats rows by their numbers in the example")
        if key not in self._made:
            self._made[key] = Selection(np.ascontiguousarray(rows, dtype=np.int64))
        return self._made[key]

    def through(self, selection: Selection, rows: NDArray | None, key: Hashable) -> Selection:
        """Return the selection of the rows of x that are read as rows of ``x[rows]``."""
        if rows is None or (self._of_examples and np.array_equal(rows, np.arange(self.n_rows))):
            return selection
        read = rows if selection.rows is None else np.asarray(rows)[selection.rows]
        return self.new(read, (selection, key))


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


@singledispatch
def output_rows(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
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
    raise CannotCut(f"{operation_in_words(op)} may mix the rows")
