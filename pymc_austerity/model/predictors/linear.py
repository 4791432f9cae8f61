"""Variables that are linear in the parameters, and functions that rules for operations share."""

from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable, is_relabelling
from pymc_austerity.model.predictors.affine import Affine
from pymc_austerity.model.predictors.columns import (
    Column,
    ColumnArray,
    mapped,
    row_vector,
    singles,
    times,
    weighted,
)
from pymc_austerity.model.predictors.facts import GraphFacts

__all__ = ["BeyondError", "Linear", "Walk", "broadcast", "each", "rule", "small", "weighted_by"]

Linear: TypeAlias = Affine | ColumnArray
MOST_COLUMNS = 2_048


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
        result = np.empty(self.facts.shape(variable), dtype=object)
        if result.size > MOST_COLUMNS:
            raise BeyondError
        for position in np.ndindex(result.shape):
            result[position] = row_vector(variable, axis, position)
        return result


@singledispatch
def rule(op: Any, node: Any, walk: Walk) -> Linear:
    """How the output of an operation is linear, given that all its inputs are linear or data."""
    if is_relabelling(op):
        return walk.linear[node.inputs[0]]
    raise BeyondError


def small(variable: Variable, walk: Walk) -> Affine | NDArray:
    """Something without rows: linear, or an array of numbers."""
    found = walk.linear.get(variable)
    if isinstance(found, Affine):
        return found
    return walk.data(variable)


def each(shape: tuple[int, ...], function: Any, arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Apply a function to the entries of arrays of one shape after broadcasting."""
    if np.prod(shape, dtype=float) > MOST_COLUMNS:
        raise BeyondError
    whole = [np.broadcast_to(array, shape) for array in arrays]
    result = np.empty(shape, dtype=object)
    for position in np.ndindex(shape):
        result[position] = function(*[array[position] for array in whole])
    return result


def broadcast(node: Any, operand: Variable, walk: Walk) -> Linear:
    """An operand repeated to the shape of the output."""
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if axis is None:
        found = walk.linear.get(operand)
        if not isinstance(found, Affine):
            raise BeyondError
        return found.broadcast(shape)
    columns = walk.columns(operand, axis)
    ndim = output.type.ndim
    columns = columns.reshape((1,) * (ndim - columns.ndim) + columns.shape)
    return ColumnArray(each(shape, lambda c: c, [columns]), axis)


def weighted_by(column: Column, weight: Any, inverse: bool) -> Column:
    """Multiply a column by a number or by a vector of the rows, or divide it."""
    if isinstance(weight, Variable):
        return weighted(column, 1 / weight if inverse else weight)
    factor = float(weight)
    return times(column, 1.0 / factor if inverse else factor)


def _as_column(data: Any) -> Column:
    if isinstance(data, Variable):
        return Column((), data)
    return Column((), None, float(data))
