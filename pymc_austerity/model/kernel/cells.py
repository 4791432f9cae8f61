"""Entries of variables for one row, as scalars, and the rules of arithmetic that find them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce, singledispatch
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    AllocEmpty,
    Blockwise,
    CAReduce,
    CheckAndRaise,
    Constant,
    CumOp,
    Dot,
    Elemwise,
    LogSoftmax,
    SearchsortedOp,
    Shape,
    Shape_i,
    Softmax,
    Variable,
    axes_of,
    run_node,
    scalar_name,
    toposort,
)
from pymc_austerity.model.kernel.formula import apply, cast
from pymc_austerity.model.kernel.scalar import Kind, NoKernelError, Scalar, constant
from pymc_austerity.model.operations.table import OPERATIONS
from pymc_austerity.model.rearranging import FEW, MANY, axes_of_rows

LARGEST = 4_096
"""Scalars of one variable."""


@dataclass(eq=False)
class Cells:
    """Entries of a variable for one row.

    Attributes
    ----------
    scalars : object array
        As many axes as the variable; the axis of the rows has length one.
    row_axis : int or None
        Which axis has the rows, if any.
    """

    scalars: NDArray[Any]
    row_axis: int | None = None

    def __post_init__(self) -> None:
        if self.scalars.size > LARGEST:
            raise NoKernelError(f"a row has {self.scalars.size} entries of one variable")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.scalars.ndim

    @property
    def only(self) -> Scalar:
        """The one entry."""
        if self.scalars.size != 1:
            raise NoKernelError("an array stands where one number is needed")
        only: Scalar = self.scalars.flat[0]
        return only

    def shape(self, n_rows: int) -> tuple[int, ...]:
        """Shape of the variable for so many rows."""
        lengths = enumerate(self.scalars.shape)
        return tuple(n_rows if axis == self.row_axis else n for axis, n in lengths)


class LayoutCells(Cells):
    """A variable that depends on the number of rows at most, such as a shape.

    Parameters
    ----------
    evaluate : callable
        From a number of rows to the value.
    dtype : str
        Its type.
    """

    def __init__(self, evaluate: Callable[[int], Any], dtype: str = "") -> None:
        self.value, self.dtype = cache(evaluate), dtype

    @property
    def scalars(self) -> NDArray[Any]:  # type: ignore[override]
        """The entries, which must be the same for any number of rows."""
        return self._cells.scalars

    @property
    def row_axis(self) -> int | None:  # type: ignore[override]
        """The axis that is as long as there are rows."""
        return self._cells.row_axis

    def shape(self, n_rows: int) -> tuple[int, ...]:
        """Shape for so many rows."""
        return np.shape(self.value(n_rows))

    @cached_property
    def _cells(self) -> Cells:
        few, many = self.value(FEW), self.value(MANY)
        axis = one_axis(few, many)
        first = many if axis is None else np.take(many, [0], axis)
        if not all(np.all((x == first) | (x != x)) for x in (few, many)):
            raise NoKernelError("the number of rows is part of the formula")
        return Cells(of_array(np.asarray(first), self.dtype).scalars, axis)


def one_axis(few: Any, many: Any) -> int | None:
    """The axis of the rows of an array that was evaluated on `FEW` and on `MANY` of them."""
    axes = axes_of_rows(few, many)
    if len(axes) > 1:
        raise NoKernelError("rows meet rows")
    return axes[0] if axes else None


def kind_of(dtype: str) -> Kind:
    """Boolean, integer or real, for the name of a dtype."""
    if dtype == "bool":
        return "b"
    if dtype.startswith(("int", "uint")):
        return "i"
    if dtype.startswith("float"):
        return "f"
    raise NoKernelError(f"numbers of type {dtype} have no rule")


def of_array(array: NDArray, dtype: str) -> Cells:
    """Cells of known numbers."""
    kind_of(dtype)
    if array.size > LARGEST:
        raise NoKernelError(f"a constant has {array.size} entries")
    return Cells(filled(array.shape, [constant(v) for v in array.ravel().tolist()]))


def filled(shape: Sequence[int], scalars: Sequence[Scalar]) -> NDArray[Any]:
    """An array of scalars."""
    array = np.empty(tuple(shape), dtype=object)
    array.reshape(-1)[:] = scalars
    return array


@singledispatch
def cells_of(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Cells of the output of an operation, from cells of its inputs; one rule for each operation.

    Parameters
    ----------
    op : Op
        What is applied.
    node : Apply
        Its application, with the types of inputs and outputs.
    operands : list of Cells
        One for each input.

    Raises
    ------
    NoKernelError
        The operation has no rule, or its operands are nothing the rule knows.
    """
    raise NoKernelError(f"the operation {op} has no rule")


def unrolled(outputs: list[Variable], inputs: Mapping[Variable, Cells]) -> list[Cells]:
    """Cells of outputs, from the cells of their inputs.

    Parameters
    ----------
    outputs : list of variables
    inputs : dict of variable to Cells
        Predictors and placeholders of leaves.

    Raises
    ------
    NoKernelError
        Some operation has no rule.
    """
    known = dict(inputs)
    for node in toposort(outputs, blockers=list(inputs)):
        operands = [_operand(variable, known) for variable in node.inputs]
        if len(node.outputs) > 1:
            raise NoKernelError(f"the operation {node.op} has no rule")
        known[node.outputs[0]] = _known(node, operands) or cells_of(node.op, node, operands)
    return [_operand(output, known) for output in outputs]


def _operand(variable: Variable, known: Mapping[Variable, Cells]) -> Cells:
    if variable in known:
        return known[variable]
    if isinstance(variable, Constant):
        return LayoutCells(lambda _: variable.data, getattr(variable.type, "dtype", ""))
    raise NoKernelError(f"{variable} is neither a predictor nor data of the rows")


def _known(node: Any, operands: list[Cells]) -> LayoutCells | None:
    """What depends on shapes alone, evaluated by PyTensor when it is asked for."""
    op, dtype = node.op, getattr(node.outputs[0].type, "dtype", "")
    if isinstance(op, Shape):
        return LayoutCells(lambda n: np.array(operands[0].shape(n)), dtype)
    if isinstance(op, Shape_i):
        return LayoutCells(lambda n: np.array(operands[0].shape(n)[op.i]), dtype)
    given = [operand for operand in operands if isinstance(operand, LayoutCells)]
    if len(given) < len(operands):
        return None

    def evaluate(n: int) -> Any:
        (value,) = run_node(node, [operand.value(n) for operand in given])
        return np.zeros_like(value) if isinstance(op, AllocEmpty) else value

    return LayoutCells(evaluate, dtype)


# ------------------------------------------------------------------ arithmetic


@cells_of.register(Elemwise)
def _elemwise(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Scalar by scalar."""
    name, kind = scalar_name(node), _kind_of_output(node)
    return _elementwise(lambda scalars: apply(name, scalars, kind), operands)


def _kind_of_output(node: Any) -> Kind:
    return kind_of(node.outputs[0].type.dtype)


def _elementwise(function: Callable[[list[Scalar]], Scalar], operands: Sequence[Cells]) -> Cells:
    """A function of scalars, applied with broadcasting."""
    axes = {c.row_axis for c in operands if c.row_axis is not None}
    if len(axes) > 1:
        raise NoKernelError("rows meet rows")
    axis = axes.pop() if axes else None
    if axis is not None and any(c.scalars.shape[axis] != 1 for c in operands):
        raise NoKernelError("an array of fixed length meets the rows")
    arrays = np.broadcast_arrays(*[c.scalars for c in operands])
    if arrays[0].size > LARGEST:
        raise NoKernelError(f"a row has {arrays[0].size} entries of one variable")
    cells = zip(*[array.flat for array in arrays], strict=True)
    return Cells(filled(arrays[0].shape, [function(list(scalars)) for scalars in cells]), axis)


@cells_of.register(CAReduce)
def _reduction(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """A sum, product, maximum, minimum, "all" or "any" over short axes.

    "All" over the rows becomes what holds for the row: one that fails has a log-density of -inf,
    which rejects as if all rows had.
    """
    (operand,), name = operands, scalar_name(node)
    axes, kind = axes_of(op.axis, operand.ndim), _kind_of_output(node)
    if operand.row_axis in axes and name != "AND":
        raise NoKernelError(f"{name} over the rows")
    kept = [k for k in range(operand.ndim) if k not in axes]
    front = operand.scalars.transpose([*kept, *axes])
    shape = tuple(operand.scalars.shape[k] for k in kept)
    table = front.reshape((math.prod(shape), math.prod(front.shape[len(kept) :])))
    folded = [_folded(name, list(entries), kind) for entries in table]
    row_axis = kept.index(operand.row_axis) if operand.row_axis in kept else None
    return Cells(filled(shape, folded), row_axis)


def _folded(name: str, entries: list[Scalar], kind: Kind) -> Scalar:
    neutral = OPERATIONS[name].neutral
    if neutral is not None:
        return apply(name, entries, kind) if entries else cast(constant(neutral), kind)
    if not entries:
        raise NoKernelError(f"{name} of nothing")
    return reduce(lambda a, b: apply(name, [a, b], kind), entries)


@cells_of.register(CumOp)
def _cumulative(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Sums or products of the entries so far."""
    (operand,) = operands
    if op.axis is None or op.axis == operand.row_axis:
        raise NoKernelError("a cumulative sum over the rows")
    step = partial(apply, op.mode.capitalize(), kind=_kind_of_output(node))
    scalars = np.moveaxis(operand.scalars, op.axis, -1)
    columns = scalars.reshape(-1, scalars.shape[-1]).tolist()
    sums = [accumulate(column, lambda a, b: step([a, b])) for column in columns]
    table = filled(scalars.shape, list(chain.from_iterable(sums)))
    return Cells(np.moveaxis(table, -1, op.axis), operand.row_axis)


@cells_of.register(Softmax)
@cells_of.register(LogSoftmax)
def _softmax(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """exp(x - max) over their sum, or the logarithm of that."""
    (x,) = node.inputs
    shifted = x - pt.max(x, axis=op.axis, keepdims=True)
    total = pt.exp(shifted).sum(axis=op.axis, keepdims=True)
    is_log = isinstance(op, LogSoftmax)
    formula = shifted - pt.log(total) if is_log else pt.exp(shifted) / total
    return unrolled([formula], {x: operands[0]})[0]


@cells_of.register(CheckAndRaise)
def _assertion(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """A formula cannot raise; conditions that are true already need no check."""
    operand, *conditions = operands
    if all(c.only.is_constant and c.only.value for c in conditions):
        return operand
    raise NoKernelError(f"the assertion {op.msg!r} has no rule")


@cells_of.register(SearchsortedOp)
def _searchsorted(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """How many of a few sorted numbers are smaller (or not larger, from the right)."""
    edges, values, *sorter = node.inputs
    if sorter or operands[0].row_axis is not None:
        raise NoKernelError("a search among sorted rows")
    compare = pt.lt if op.side == "left" else pt.le
    formula = compare(edges, values[..., None]).sum(axis=-1)
    return unrolled([formula], dict(zip(node.inputs, operands, strict=True)))[0]


@cells_of.register(Blockwise)
def _blockwise(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Stacks of matrices."""
    if isinstance(op.core_op, Dot):
        return _dot(op.core_op, node, operands)
    raise NoKernelError(f"the operation {op} has no rule")


@cells_of.register(Dot)
def _dot(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Sums of products over the axis that both have."""
    left, right = node.inputs
    if right.type.ndim == 1:
        formula = (left * right).sum(axis=-1)
    else:
        columns = right if left.type.ndim == 1 else pt.expand_dims(right, -3)
        formula = (left[..., None] * columns).sum(axis=-2)
    return unrolled([formula], dict(zip(node.inputs, operands, strict=True)))[0]
