"""Small arrays of scalars: the entries of a variable for one row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.kernel.apply import apply, cast
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Kind, Scalar, constant
from pymc_austerity.model.operations.table import OPERATIONS

__all__ = [
    "LARGEST",
    "Cells",
    "common_row_axis",
    "elementwise",
    "filled",
    "kind_of",
    "of_array",
    "reduced",
]

LARGEST = 4_096
"""Scalars of one variable."""


@dataclass(frozen=True, eq=False)
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


def common_row_axis(operands: Sequence[Cells]) -> int | None:
    """The axis of the rows of operands of equal ndim."""
    axes = {c.row_axis for c in operands if c.row_axis is not None}
    if len(axes) > 1:
        raise NoKernelError("rows meet rows")
    axis = axes.pop() if axes else None
    if axis is not None and any(c.scalars.shape[axis] != 1 for c in operands):
        raise NoKernelError("an array of fixed length meets the rows")
    return axis


def elementwise(function: Callable[[list[Scalar]], Scalar], operands: Sequence[Cells]) -> Cells:
    """A function of scalars, applied with broadcasting."""
    axis = common_row_axis(operands)
    arrays = np.broadcast_arrays(*[c.scalars for c in operands])
    if arrays[0].size > LARGEST:
        raise NoKernelError(f"a row has {arrays[0].size} entries of one variable")
    cells = zip(*[array.flat for array in arrays], strict=True)
    return Cells(filled(arrays[0].shape, [function(list(scalars)) for scalars in cells]), axis)


def reduced(name: str, operand: Cells, axes: Sequence[int], kind: Kind) -> Cells:
    """A sum, product, maximum, minimum, "all" or "any" over short axes.

    "All" over the rows becomes what holds for the row: one that fails has a log-density of -inf,
    which rejects as if all rows had.
    """
    axes = tuple(sorted(a % operand.ndim for a in axes)) if operand.ndim else ()
    if operand.row_axis in axes and name != "AND":
        raise NoKernelError(f"{name} over the rows")
    kept = [k for k in range(operand.ndim) if k not in axes]
    front = operand.scalars.transpose([*kept, *axes])
    shape = tuple(operand.scalars.shape[k] for k in kept)
    table = front.reshape((int(np.prod(shape)), int(np.prod(front.shape[len(kept) :]))))
    folded = [_folded(name, list(entries), kind) for entries in table]
    row_axis = kept.index(operand.row_axis) if operand.row_axis in kept else None
    return Cells(filled(shape, folded), row_axis)


def _folded(name: str, entries: list[Scalar], kind: Kind) -> Scalar:
    neutral = OPERATIONS[name].neutral
    if neutral is not None:
        return apply(name, entries, kind) if entries else cast(constant(neutral), kind)
    if not entries:
        raise NoKernelError(f"{name} of nothing")
    result = entries[0]
    for entry in entries[1:]:
        result = apply(name, [result, entry], kind)
    return result
