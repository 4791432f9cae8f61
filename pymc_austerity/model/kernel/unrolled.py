"""A row graph, unrolled into scalars."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from pymc_austerity._pymc import Constant, Variable, toposort
from pymc_austerity.model.kernel.cells import Cells, of_array
from pymc_austerity.model.kernel.refusal import NoKernelError

__all__ = ["cells_of", "unrolled"]


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
