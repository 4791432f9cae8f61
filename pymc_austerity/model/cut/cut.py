"""A graph cut to rows: rows are pushed from the log-likelihood down to the data, rule by rule."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ARange,
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
    TensorType,
    Variable,
    ancestors,
)
from pymc_austerity.model.cut.known import (
    Known,
    array_of,
    is_cast,
    is_same_memory,
    is_view,
    without_views,
)

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
_LOCAL_SHARE = 0.25
"""A parameter with an entry for at least this share of the rows belongs to the rows."""

_CHUNK = 65_536
"""Rows compared at a time, so that a comparison needs little memory."""

_NUMBERS = "it reads the numbers of the rows, which are others in the example"
_SHARE = 0.5
_AT_LEAST = 200
"""Data of at least this share of the rows, and this many, is taken for the rows themselves. What
is smaller costs little, and a model with few rows may well have as many covariates."""


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


@singledispatch
def output_rows(op: Any, cut: "Cut", wanted: Wanted) -> Variable:
    """Rows of an output of an operation, from rows of its inputs.

    Parameters
    ----------
    op : Op
        The operation; rules are registered for its class.
    cut : Cut
        Takes rows of inputs (`take`), or keeps inputs that have no rows (`keep`).
    wanted : Wanted
        Output, axis and rows.

    Raises
    ------
    CannotCut
        There is no rule, or the operation mixes rows.
    """
    raise CannotCut(f"{operation_in_words(op)} may mix the rows")


@dataclass(frozen=True)
class RowLeaf:
    """Data that the likelihood of a row reads.

    Attributes
    ----------
    placeholder : TensorVariable
        Stands for the rows of the batch in the graph.
    array : array, shape (n_rows, ...)
        All rows; where possible a view of the user's data, in the dtype of the user's data.
    is_computed : bool
        Whether the model computes it from the data, once.
    recipe : variable or None
        Where the array holds a few example rows: what makes those of any rows, a graph of the
        example data's placeholders. A placeholder of these is its own.
    """

    placeholder: Variable
    array: NDArray
    is_computed: bool = False
    recipe: Variable | None = None


class Cut:
    """Rows of variables, from the log-likelihood down to the data.

    Parameters
    ----------
    known : Known
        Dependence on parameters, values and shapes.
    n_rows : int
        Number of rows of the whole data.

    Attributes
    ----------
    batch_length : scalar variable
        Number of rows in the batch.
    leaves : list of RowLeaf
        Data met so far.
    local : set of variables
        Value variables met so far that have one entry per row.
    kept : list of variables
        Variables that are evaluated in full whatever the batch.
    """

    def __init__(self, known: Known, n_rows: int) -> None:
        self.known = known
        self.n_rows = n_rows
        self.batch_length = pt.lscalar("batch_length")
        self.leaves: list[RowLeaf] = []
        self.local: set[Variable] = set()
        self.kept: list[Variable] = []
        self._selections: dict[Hashable, Selection] = {}
        self._placeholders: dict[Hashable, Variable] = {}
        self._taken: dict[tuple[Variable, int, Selection], Variable] = {}

    # ------------------------------------------------------------------ for the rules

    def take(self, variable: Variable, axis: int, selection: Selection = WHOLE) -> Variable:
        """Cut a variable to the rows of the batch along one of its axes.

        Raises
        ------
        CannotCut
            The rows need other rows.
        """
        key = (variable, axis, selection)
        if key not in self._taken:
            self._taken[key] = self._take(variable, axis, selection)
        return self._taken[key]

    def take_or_none(self, variable: Variable, axis: int, selection: Selection) -> Variable | None:
        """Cut a variable; None, and no leaf, where that is impossible."""
        kept, local = list(self.kept), set(self.local)
        try:
            return self.take(variable, axis, selection)
        except CannotCut:
            self.kept, self.local = kept, local
            return None

    def take_or_keep(self, variable: Variable, axis: int, selection: Selection) -> Variable:
        """Cut an operand to rows, or keep it where it is broadcast along the rows.

        Negative axes are axes that the operand does not have.
        """
        if axis < 0 or variable.type.shape[axis] == 1:
            return self.keep(variable)
        return self.take(variable, axis, selection)

    def keep(self, variable: Variable) -> Variable:
        """Note that a variable is evaluated in full."""
        if self.known.depends(variable):
            self.kept.append(variable)
            parameter = self.known.parameter(without_views(variable))
            if self.known.examples:
                self._refuse_example(variable)
            elif parameter is not None and self.n_rows in self.known.shape(variable):
                self.local.add(parameter)
        return variable

    def leaf(self, array: NDArray, name: str, key: Hashable, is_computed: bool = True) -> Variable:
        """Placeholder of the batch's rows of an array; the same one for the same key or numbers."""
        if key not in self._placeholders:
            if array.shape[0] != self.n_rows:
                raise CannotCut(f"{name!r} has {array.shape[0]:,} rows instead of {self.n_rows:,}")
            same = (leaf for leaf in self.leaves if _are_equal(leaf.array, array))
            leaf = None if self.known.examples else next(same, None)
            if leaf is None:
                # pt.tensor(name) takes a name such as "prop(k, n)" for a list of dtypes
                kind = pt.TensorType(dtype=array.dtype, shape=(None, *array.shape[1:]))
                leaf = RowLeaf(kind(name), array, is_computed)
                self.leaves.append(leaf)
            self._placeholders[key] = leaf.placeholder
        return self._placeholders[key]

    def mask(self, rows: NDArray[np.bool_], name: str, key: Hashable, like: Wanted) -> Variable:
        """Placeholder of truth values per row or entry, broadcastable to what is wanted."""
        if self.known.examples:
            raise CannotCut("it changes rows by their numbers in the example")
        if rows.ndim > 1:
            return pt.moveaxis(self.leaf(rows, name, key), 0, like.axis)
        order = [0 if axis == like.axis else "x" for axis in range(like.ndim)]
        return self.leaf(rows, name, key).dimshuffle(order)

    def rows_of(self, selection: Selection) -> NDArray[np.int64]:
        """Rows read, spelled out, shape (n_rows,)."""
        return np.arange(self.n_rows) if selection.rows is None else selection.rows

    def selection(self, rows: NDArray, key: Hashable) -> Selection:
        """Return the selection of these rows; the same for the same key."""
        if self.known.examples:
            raise CannotCut("it picks, joins or repeats rows by their numbers in the example")
        if key not in self._selections:
            self._selections[key] = Selection(np.ascontiguousarray(rows, dtype=np.int64))
        return self._selections[key]

    def through(self, selection: Selection, rows: NDArray | None, key: Hashable) -> Selection:
        """Return the selection of the rows of x that are read as rows of ``x[rows]``."""
        if rows is None or (self.known.examples and np.array_equal(rows, np.arange(self.n_rows))):
            return selection
        read = rows if selection.rows is None else np.asarray(rows)[selection.rows]
        return self.selection(read, (selection, key))

    def lengths(self, shape: Sequence[int], axis: int) -> list[Any]:
        """A shape with the length of the batch on the axis of the rows."""
        return [self.batch_length if k == axis else n for k, n in enumerate(shape)]

    # ------------------------------------------------------------------ roots

    def _take(self, variable: Variable, axis: int, selection: Selection) -> Variable:
        if self.known.examples:
            return self._rows_of_examples(variable, axis, selection)
        if not self.known.depends(variable):
            return self._rows_of_data(variable, axis, selection)
        parameter = self.known.parameter(variable)
        if parameter is not None:
            if self.known.shape(variable)[axis] >= _LOCAL_SHARE * self.n_rows:
                self.local.add(parameter)
            rows = self.rows_of(selection)
            return variable[(slice(None),) * axis + (self.leaf(rows, "index", selection),)]
        return output_rows(variable.owner.op, self, Wanted(variable, axis, selection))

    def _rows_of_data(self, variable: Variable, axis: int, selection: Selection) -> Variable:
        if is_cast(variable):  # by row, so that the data stay as small as they are
            return pt.cast(self.take(variable.owner.inputs[0], axis, selection), variable.dtype)
        array = np.moveaxis(np.asarray(self.known.value(variable)), axis, 0)
        if selection.rows is not None:
            array = array[selection.rows]
        if _is_constant(array):
            one = np.moveaxis(array[:1], 0, axis)
            return pt.alloc(pt.constant(one), *self.lengths(one.shape, axis))
        root = without_views(variable)
        is_computed = root.owner is not None
        name = variable.name or root.name or ("computed" if is_computed else "data")
        placeholder = self.leaf(array, name, (variable, axis, selection), is_computed)
        return pt.moveaxis(placeholder, 0, axis) if axis else placeholder

    # ------------------------------------------------------------------ examples

    def _rows_of_examples(self, variable: Variable, axis: int, selection: Selection) -> Variable:
        """Rows of named data, of which only the example is known."""
        if self.known.parameter(variable) is not None:
            raise CannotCut(f"{variable.name!r} has one entry for each row of the example")
        if variable.owner is not None:
            if isinstance(variable.owner.op, ARange):
                raise CannotCut(_NUMBERS)
            return output_rows(variable.owner.op, self, Wanted(variable, axis, selection))
        name = self.known.examples.name_of(variable)
        if name is None:
            raise _not_named(variable)
        if axis:
            raise CannotCut(f"the rows of {name!r} are on its axis {axis} and not on the first one")
        if name not in self._placeholders:
            array = np.asarray(self.known.value(variable))
            placeholder = self.leaf(array, name, name, is_computed=False)
            self.leaves[-1] = replace(self.leaves[-1], recipe=placeholder)
        return self._placeholders[name]

    def _refuse_example(self, variable: Variable) -> None:
        """Refuse a row that depends on others."""
        if self.known.reads_examples(variable):
            roots = (self.known.examples.name_of(v) for v in ancestors([variable]) if not v.owner)
            names = ", ".join(sorted({repr(name) for name in roots if name}))
            raise CannotCut(
                f"a quantity such as a mean is computed from all rows of {names}, and the model "
                "has only an example of these",
                "give its value as a number",
            )


def _not_named(variable: Variable) -> CannotCut:
    """The refusal of data that have the length of the example."""
    array = np.asarray(array_of(variable))
    if np.array_equal(np.ravel(array), np.arange(array.size)):
        return CannotCut(_NUMBERS)
    shape = " x ".join(map(str, array.shape))
    name = repr(variable.name) if variable.name else f"an array of shape {shape} without a name"
    remedy = f"add its source, as in data={{..., {name}: source}}"
    if not variable.name:
        remedy = "hold it in a pm.Data and name a source for it"
    return CannotCut(
        f"{name} has one entry for each row of the example and data= does not name it", remedy
    )


def _is_constant(array: NDArray) -> bool:
    """Tell whether all rows are equal, e.g. whether a value lies outside of its support."""
    if len(array) < 2:
        return False
    return array.strides[0] == 0 or _are_equal(array, np.broadcast_to(array[:1], array.shape))


def _are_equal(one: NDArray, other: NDArray) -> bool:
    """Tell whether arrays hold the same numbers in the same type, in little memory."""
    if is_same_memory(one, other):
        return True
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    starts = range(0, len(one), _CHUNK)
    return all(np.array_equal(one[k : k + _CHUNK], other[k : k + _CHUNK]) for k in starts)


def refuse_work_on_all_rows(cut: Cut) -> None:
    """Refuse parameter-dependent work over all rows, e.g. the mean of all linear predictors.

    The rules make such a graph right, and no comparison of numbers can find it: it only costs a
    full pass over the data at every evaluation.

    Raises
    ------
    CannotCut
        Something that is kept combines parameters with all rows.
    """
    known = cut.known
    if known.examples:  # what is kept reads no rows: see `Cut.keep`
        return

    def spans_rows(variable: Variable) -> bool:
        if not isinstance(variable.type, TensorType):
            return False
        shape = known.shape(variable)
        threshold = max(_SHARE * cut.n_rows, _AT_LEAST)
        return cut.n_rows in shape or (
            not known.depends(variable) and max(shape, default=0) >= threshold
        )

    for variable in known.dependent(dict.fromkeys(cut.kept)):
        if variable.owner is None or is_view(variable):
            continue
        if any(spans_rows(v) for v in (variable, *variable.owner.inputs)):
            raise CannotCut(
                f"{operation_in_words(variable.owner.op)} combines parameters with all "
                f"{cut.n_rows:,} rows, which takes a pass over all the data for any batch"
            )
