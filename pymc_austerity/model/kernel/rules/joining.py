"""Joining short arrays, and stacking scalars."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import Join, MakeVector, join_arguments
from pymc_austerity.model.kernel.apply import cast
from pymc_austerity.model.kernel.cells import Cells, common_row_axis, filled, kind_of
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.unrolled import cells_of


@cells_of.register(Join)
def join(op: Any, node: Any, operands: list[Cells]) -> Cells:
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
def make_vector(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """A vector of scalars."""
    kind = kind_of(node.outputs[0].type.dtype)
    return Cells(filled((len(operands),), [cast(operand.only, kind) for operand in operands]))
