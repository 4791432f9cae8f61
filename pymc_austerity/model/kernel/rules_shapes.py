"""Shapes, and operations that only rearrange or join."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_austerity._pymc import (
    Alloc,
    AllocEmpty,
    ARange,
    DimShuffle,
    ExtractDiag,
    Join,
    JoinDims,
    MakeVector,
    Reshape,
    ScalarFromTensor,
    Shape,
    Shape_i,
    SpecifyShape,
    SplitDims,
    TensorFromScalar,
    join_arguments,
)
from pymc_austerity.model.kernel.formula import cast
from pymc_austerity.model.kernel.row_formula import (
    Cells,
    cells_of,
    common_row_axis,
    filled,
    kind_of,
    of_array,
)
from pymc_austerity.model.kernel.scalar import LENGTH, ROW, NoKernelError, Scalar, constant


@cells_of.register(ScalarFromTensor)
@cells_of.register(TensorFromScalar)
@cells_of.register(SpecifyShape)
def _same(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """The same entries."""
    return operands[0]


@cells_of.register(DimShuffle)
def _dimshuffle(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Axes in another order, some new, some dropped."""
    (operand,) = operands
    order = list(op.new_order)
    kept = [k for k in order if k != "x"]
    dropped = [k for k in range(operand.ndim) if k not in kept]
    if operand.row_axis in dropped:
        raise NoKernelError("the axis of the rows is dropped")
    scalars = operand.scalars.transpose([*kept, *dropped])
    shape = iter(scalars.shape)
    scalars = scalars.reshape([1 if k == "x" else next(shape) for k in order])
    row_axis = None if operand.row_axis is None else order.index(operand.row_axis)
    return Cells(scalars, row_axis)


@cells_of.register(Shape)
def _shape(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Lengths of all axes."""
    return _vector(_lengths(operands[0]))


@cells_of.register(Shape_i)
def _shape_i(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Length of one axis."""
    return _scalar(_lengths(operands[0])[op.i])


@cells_of.register(ARange)
def _arange(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Positions of the rows, or a few numbers."""
    start, stop, step = [operand.only for operand in operands]
    is_from_zero = start.is_constant and start.value == 0 and step.is_constant and step.value == 1
    if stop is LENGTH and is_from_zero:
        return Cells(_vector([ROW]).scalars, 0)
    if not all(s.is_constant for s in (start, stop, step)):
        raise NoKernelError("a range of unknown length")
    numbers = np.arange(start.value, stop.value, step.value)
    return of_array(numbers, node.outputs[0].type.dtype)


@cells_of.register(Alloc)
def _alloc(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """The same entries many times over."""
    operand, *lengths = operands
    return broadcast_to(operand, [length.only for length in lengths])


@cells_of.register(AllocEmpty)
def _alloc_empty(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Entries that are set later."""
    return broadcast_to(_scalar(constant(0.0)), [length.only for length in operands])


@cells_of.register(ExtractDiag)
def _diagonal(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Diagonal of a small matrix."""
    (operand,) = operands
    if operand.row_axis in {op.axis1, op.axis2}:
        raise NoKernelError("a diagonal along the rows")
    scalars = np.diagonal(operand.scalars, op.offset, op.axis1, op.axis2)
    row_axis = operand.row_axis
    if row_axis is not None:
        row_axis -= sum(a < row_axis for a in (op.axis1, op.axis2))
    return Cells(scalars.copy(), row_axis)


@cells_of.register(Reshape)
def _reshape(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Another shape that leaves the rows where they are."""
    operand, lengths = operands
    return reshaped(operand, list(lengths.scalars.flat))


@cells_of.register(JoinDims)
def _join_dims(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Several axes as one."""
    (operand,) = operands
    lengths = _lengths(operand)
    start, stop = op.start_axis, op.start_axis + op.n_axes
    joined = lengths[start:stop]
    if LENGTH in joined and any(s is not LENGTH and s.value != 1 for s in joined):
        raise NoKernelError("rows are joined with another axis")
    length = LENGTH if LENGTH in joined else constant(int(np.prod([s.value for s in joined])))
    return reshaped(operand, [*lengths[:start], length, *lengths[stop:]])


@cells_of.register(SplitDims)
def _split_dims(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """One axis as several."""
    operand, parts = operands
    lengths = _lengths(operand)
    return reshaped(operand, [*lengths[: op.axis], *parts.scalars.flat, *lengths[op.axis + 1 :]])


def broadcast_to(operand: Cells, lengths: Sequence[Scalar]) -> Cells:
    """Entries repeated to a shape that may name the rows."""
    row_axis = _row_axis(lengths)
    shape = [_known(length) for length in lengths]
    padded = operand.ndim - len(shape)
    own = None if operand.row_axis is None else operand.row_axis - padded
    if own is not None and own != row_axis:
        raise NoKernelError("rows meet rows")
    if row_axis is not None and own is None and -padded <= row_axis:
        position = row_axis + padded
        if position >= 0 and operand.scalars.shape[position] != 1:
            raise NoKernelError("an array of fixed length meets the rows")
    return Cells(np.broadcast_to(operand.scalars, shape).copy(), row_axis)


def reshaped(operand: Cells, lengths: Sequence[Scalar]) -> Cells:
    """Entries in another shape, in which the rows stay apart."""
    row_axis = _row_axis(lengths)
    shape = [_known(length) for length in lengths]
    if row_axis is None and operand.row_axis is not None:
        if shape.count(-1) != 1:
            raise NoKernelError("the axis of the rows is reshaped")
        rest = int(np.prod([n for n in shape if n != -1]))
        if rest != operand.scalars.size:
            raise NoKernelError("the axis of the rows is reshaped")
        row_axis = shape.index(-1)
        shape[row_axis] = 1
    if operand.row_axis is not None and row_axis is not None:
        before = int(np.prod(operand.scalars.shape[: operand.row_axis]))
        if int(np.prod(shape[:row_axis])) != before:
            raise NoKernelError("the axis of the rows is reshaped")
    elif row_axis is not None:
        raise NoKernelError("an array of fixed length becomes rows")
    return Cells(operand.scalars.reshape(shape), row_axis)


def _lengths(operand: Cells) -> list[Scalar]:
    lengths = enumerate(operand.scalars.shape)
    return [LENGTH if axis == operand.row_axis else constant(n) for axis, n in lengths]


def _row_axis(lengths: Sequence[Scalar]) -> int | None:
    axes = [axis for axis, length in enumerate(lengths) if length is LENGTH]
    if len(axes) > 1:
        raise NoKernelError("rows meet rows")
    return axes[0] if axes else None


def _known(length: Scalar) -> int:
    if length is LENGTH:
        return 1
    if not length.is_constant:
        raise NoKernelError("an array of unknown length")
    return int(length.value)


def _vector(entries: list[Scalar]) -> Cells:
    return Cells(filled((len(entries),), entries))


def _scalar(entry: Scalar) -> Cells:
    return Cells(filled((), [entry]))


@cells_of.register(Join)
def _join(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """End to end along a short axis."""
    axis, joined = join_arguments(node)
    parts = operands[len(operands) - len(joined) :]
    axis %= parts[0].ndim
    row_axis = {p.row_axis for p in parts} - {None}
    if row_axis == {axis}:
        raise NoKernelError("arrays are joined along the rows")
    kind = kind_of(node.outputs[0].type.dtype)
    scalars = np.concatenate([p.scalars for p in parts], axis=axis)
    scalars = filled(scalars.shape, [cast(s, kind) for s in scalars.flat])
    others = [Cells(p.scalars.take([0], axis=axis), p.row_axis) for p in parts if p.scalars.size]
    return Cells(scalars, common_row_axis(others))


@cells_of.register(MakeVector)
def _make_vector(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """A vector of scalars."""
    kind = kind_of(node.outputs[0].type.dtype)
    return Cells(filled((len(operands),), [cast(operand.only, kind) for operand in operands]))
