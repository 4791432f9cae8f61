"""Shapes, row axes and values of everything in a row graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    CheckAndRaise,
    Constant,
    Shape,
    Shape_i,
    Variable,
    run_node,
    toposort,
)
from pymc_austerity.model.cut import RowLeaf

__all__ = ["MANY", "GraphFacts", "MixedRowsError"]

_FEW, MANY = 3, 5
"""Numbers of rows: the axis that changes its length with them is that of the rows."""


class MixedRowsError(Exception):
    """Something has more than one axis of rows."""


class GraphFacts:
    """Properties of the variables of a row graph, found by running it on a few rows.

    Parameters
    ----------
    parameters : mapping of variable to array
        Value variables with their values.
    leaves : sequence of RowLeaf
        Data of the rows.

    Attributes
    ----------
    arrays : dict of variable to array
        All rows of the placeholders whose rows are all in memory.
    """

    def __init__(self, parameters: Mapping[Variable, NDArray], leaves: Sequence[RowLeaf]) -> None:
        self.arrays = {leaf.placeholder: leaf.array for leaf in leaves if leaf.recipe is None}
        self._values: tuple[dict[Variable, Any], ...] = tuple(
            {
                **parameters,
                **{
                    leaf.placeholder: leaf.array[np.zeros(n, dtype=np.int64)].astype(
                        leaf.placeholder.dtype
                    )
                    for leaf in leaves
                },
            }
            for n in (_FEW, MANY)
        )
        self._dependent = set(parameters)
        self._by_row = {leaf.placeholder for leaf in leaves}
        self._axes: dict[Variable, int | None] = {}

    def learn(self, output: Variable) -> None:
        """Run whatever of a graph has not been run before."""
        with np.errstate(all="ignore"):
            for node in toposort([output], blockers=list(self._values[0])):
                self._learn_node(node)
        self._axis_of(output)

    def depends(self, variable: Variable) -> bool:
        """Tell whether a value depends on parameters."""
        return variable in self._dependent

    def reads_rows(self, variable: Variable) -> bool:
        """Tell whether a value, or its shape, depends on the data of the rows."""
        return variable in self._by_row

    def axis(self, variable: Variable) -> int | None:
        """Axis of the rows, or None."""
        if variable not in self._axes:
            self.learn(variable)
            self._axes[variable] = self._axis_of(variable)
        return self._axes[variable]

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """Shape with 1 for the number of rows."""
        axis, shape = self.axis(variable), np.shape(self.value(variable))
        return tuple(1 if k == axis else n for k, n in enumerate(shape))

    def value(self, variable: Variable) -> Any:
        """Value on `MANY` equal rows."""
        if isinstance(variable, Constant):
            return variable.data
        if variable not in self._values[1]:
            self.learn(variable)
        return self._values[1][variable]

    def _learn_node(self, node: Any) -> None:
        for values in self._values:
            inputs = [i.data if isinstance(i, Constant) else values[i] for i in node.inputs]
            # a check may fail at this point; it has the shape of what it lets through
            outputs = inputs[:1] if isinstance(node.op, CheckAndRaise) else run_node(node, inputs)
            values.update(zip(node.outputs, outputs, strict=True))
        is_shape = isinstance(node.op, Shape | Shape_i)
        if not is_shape and any(i in self._dependent for i in node.inputs):
            self._dependent.update(node.outputs)
        if any(i in self._by_row for i in node.inputs):
            self._by_row.update(node.outputs)

    def _axis_of(self, variable: Variable) -> int | None:
        if isinstance(variable, Constant):
            return None
        few, many = (np.shape(values[variable]) for values in self._values)
        differing = [k for k, (one, two) in enumerate(zip(few, many, strict=True)) if one != two]
        if len(differing) > 1 or any((few[k], many[k]) != (_FEW, MANY) for k in differing):
            raise MixedRowsError
        return differing[0] if differing else None
