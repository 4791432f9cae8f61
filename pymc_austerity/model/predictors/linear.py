"""Facts of a row graph, and variables in it that are linear in the parameters."""

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Constant,
    Shape,
    Shape_i,
    Variable,
    is_relabelling,
    run_node,
    toposort,
)
from pymc_austerity.model.cut import RowLeaf
from pymc_austerity.model.predictors.affine import Affine
from pymc_austerity.model.predictors.columns import (
    Column,
    ColumnArray,
    by_position,
    mapped,
    row_vector,
    singles,
)
from pymc_austerity.model.rearranging import FEW, MANY, axes_of_rows

Linear: TypeAlias = Affine | ColumnArray
MOST_COLUMNS = 2_048


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
        first = {x.placeholder: x.array[[0]].astype(x.placeholder.dtype) for x in leaves}
        self._values: tuple[dict[Variable, Any], ...] = tuple(
            {**parameters, **{p: row.repeat(n, axis=0) for p, row in first.items()}}
            for n in (FEW, MANY)
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
            values.update(zip(node.outputs, run_node(node, inputs), strict=True))
        is_shape = isinstance(node.op, Shape | Shape_i)
        if not is_shape and any(i in self._dependent for i in node.inputs):
            self._dependent.update(node.outputs)
        if any(i in self._by_row for i in node.inputs):
            self._by_row.update(node.outputs)

    def _axis_of(self, variable: Variable) -> int | None:
        if isinstance(variable, Constant):
            return None
        few, many = (values[variable] for values in self._values)
        axes = axes_of_rows(few, many)
        if len(axes) > 1 or any((np.shape(few)[k], np.shape(many)[k]) != (FEW, MANY) for k in axes):
            raise MixedRowsError
        return axes[0] if axes else None


class BeyondError(Exception):
    """The result is not linear in the parameters, or there is no rule."""


class Walk:
    """Everything that is linear in the parameters.

    Parameters
    ----------
    facts : GraphFacts
        Properties of the graph.
    size : int
        Length of the raveled vector of the variables.

    Attributes
    ----------
    linear : dict of variable to Affine or ColumnArray
        What has been found.
    """

    def __init__(self, facts: GraphFacts, size: int) -> None:
        self.facts = facts
        self.size = size
        self.linear: dict[Variable, Linear] = {}

    def is_beyond(self, variable: Variable) -> bool:
        """Tell whether a variable depends on parameters in another way than linearly."""
        return self.facts.depends(variable) and variable not in self.linear

    def columns(self, variable: Variable, axis: int) -> NDArray[Any]:
        """ColumnArray of a variable that is not beyond, of length 1 along the axis of the rows."""
        found = self.linear.get(variable)
        if isinstance(found, ColumnArray):
            return found.array
        if isinstance(found, Affine):
            return singles(found, axis).array
        return mapped(_as_column, self.data(variable))

    def data(self, variable: Variable) -> NDArray[Any]:
        """Data as an array of vectors, shape (m,), or of numbers where there are no rows."""
        axis = self.facts.axis(variable)
        if axis is None:
            if self.facts.reads_rows(variable):
                raise BeyondError
            return np.asarray(self.facts.value(variable))
        shape = self.facts.shape(variable)
        if np.prod(shape, dtype=float) > MOST_COLUMNS:
            raise BeyondError
        return by_position(shape, lambda position: row_vector(variable, axis, position))


@singledispatch
def rule(op: Any, node: Any, walk: Walk) -> Linear:
    """How the output of an operation is linear, given that all its inputs are linear or data."""
    if is_relabelling(op):
        return walk.linear[node.inputs[0]]
    raise BeyondError


def _as_column(data: Any) -> Column:
    if isinstance(data, Variable):
        return Column((), data)
    return Column((), None, float(data))
