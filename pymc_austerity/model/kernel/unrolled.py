"""A row graph, rewritten for evaluation and unrolled into arrays of scalars."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    UNSUITABLE,
    CheckParameterValue,
    Constant,
    Variable,
    clone_replace,
    rewrite_graph,
    stabilized,
    toposort,
)
from pymc_austerity.model.kernel.formula import apply, cast
from pymc_austerity.model.kernel.scalar import Kind, NoKernelError, Scalar, constant
from pymc_austerity.model.operations.table import OPERATIONS
from pymc_austerity.model.rewritten import inlined

__all__ = [
    "LARGEST",
    "Cells",
    "cells_of",
    "common_row_axis",
    "elementwise",
    "filled",
    "kind_of",
    "of_array",
    "prepared",
    "reduced",
    "unrolled",
]


def prepared(function: Variable, check_bounds: bool = True) -> Variable:
    """Rewrite a graph into stable and cheap operations, without loops or fused operations.

    Parameters
    ----------
    function : variable
    check_bounds : bool
        Whether checks of parameters stay.
    """
    (graph,) = inlined([clone_replace(function, {}, rebuild_strict=False)])
    if not check_bounds:
        graph = _without_checks(graph)
    return rewrite_graph(
        stabilized(graph),
        include=("canonicalize", "stabilize", "specialize"),
        exclude=("local_pow_to_nested_squaring", *UNSUITABLE),
    )


def _without_checks(graph: Variable) -> Variable:
    while checks := [n for n in toposort([graph]) if isinstance(n.op, CheckParameterValue)]:
        replacement = {checks[0].outputs[0]: checks[0].inputs[0]}
        graph = clone_replace(graph, replacement, rebuild_strict=False)
    return graph


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
        known[node.outputs[0]] = cells_of(node.op, node, operands)
    return [_operand(output, known) for output in outputs]


def _operand(variable: Variable, known: Mapping[Variable, Cells]) -> Cells:
    if variable in known:
        return known[variable]
    if isinstance(variable, Constant):
        if not hasattr(variable.type, "dtype"):
            return Cells(np.empty(0, dtype=object))
        return of_array(np.asarray(variable.data), variable.type.dtype)
    raise NoKernelError(f"{variable} is neither a predictor nor data of the rows")
