"""A matrix of observations as the column of its entries, each a row of its own."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    Alloc,
    CAReduce,
    CheckAndRaise,
    DimShuffle,
    Elemwise,
    Variable,
    rebuilt,
)
from pymc_austerity.model.cut import CannotCut, Known
from pymc_austerity.model.operations.table import scalar_name


def in_entries(log_density: Variable, known: Known) -> Variable | None:
    """Log-densities of the entries of a matrix, one after the other.

    Where an entry reads one parameter of its row and one of its column, as the ability of a person
    and the difficulty of an item, a row of the matrix reads those of all columns.

    Parameters
    ----------
    log_density : variable, shape (n, k)
        In plain operations.
    known : Known
        Of the variables that it depends on.

    Returns
    -------
    variable, shape (n * k,), or None
        None where the rows of the matrix serve as well, or entries are not made one by one.
    """
    shape = known.shape(log_density)
    if len(shape) != 2 or min(shape) < 2:
        return None
    entries = _Entries(shape, known)
    try:
        column = entries.of(log_density, (0, 1))
    except CannotCut:
        return None
    if entries.along != {0, 1}:
        return None
    known.learn_shapes([column])
    return column


class _Entries:
    """Variables that are broadcast to a matrix, with an entry for each of the matrix.

    Attributes
    ----------
    along : set of int
        Axes along which entries read other parameters.
    """

    def __init__(self, shape: tuple[int, ...], known: Known) -> None:
        self.known, self._shape = known, shape
        self._places = [pt.constant(place.ravel()) for place in np.indices(shape)]
        self._made: dict[tuple[Variable, tuple[int, ...]], Variable] = {}
        self.along: set[int] = set()

    def of(self, variable: Variable, axes: tuple[int, ...]) -> Variable:
        """A vector; of length one where all entries read the same.

        Parameters
        ----------
        variable : variable
        axes : tuple of int
            The axis of the matrix that belongs to each of its own.
        """
        key = variable, axes
        if key not in self._made:
            self._made[key] = self._of(variable, axes)
        return self._made[key]

    def _of(self, variable: Variable, axes: tuple[int, ...]) -> Variable:
        node: Any = variable.owner if self.known.depends(variable) else None
        op = node.op if node is not None else None
        if isinstance(op, Elemwise):
            inputs = [self.of(i, axes) for i in node.inputs]
            return op.make_node(*inputs).outputs[node.outputs.index(variable)]
        if isinstance(op, Alloc):
            (value, *lengths) = node.inputs
            return self.of(value, axes[len(lengths) - value.type.ndim :])
        if isinstance(op, CheckAndRaise):
            value, *conditions = node.inputs
            return op(self.of(value, axes), *rebuilt(conditions, self._all))
        if isinstance(op, DimShuffle) and variable.type.ndim:
            (operand,), order = node.inputs, op.new_order
            own = [axes[order.index(k)] if k in order else 0 for k in range(operand.type.ndim)]
            return self.of(operand, tuple(own))
        return self._picked(variable, axes)

    def _all(self, node: Any, inputs: list[Variable]) -> list[Variable] | None:
        """That all entries of a matrix are true, of its entries one after the other."""
        if not isinstance(node.op, CAReduce) or scalar_name(node) != "AND":
            return None
        (matrix,) = node.inputs
        if node.outputs[0].type.ndim or self.known.shape(matrix) != self._shape:
            return None
        return [pt.all(self.of(matrix, (0, 1)))]

    def _picked(self, variable: Variable, axes: tuple[int, ...]) -> Variable:
        """What every entry reads of something that is not made entry by entry."""
        lengths = self.known.shape(variable)
        own = [k for k, length in enumerate(lengths) if length > 1]
        ones = [k for k, length in enumerate(lengths) if length == 1]
        if self.known.depends(variable) and own:
            if len(own) > 1 or self._reads_matrix(variable, lengths[own[0]]):
                raise CannotCut("its entries are not made one by one")
            self.along.add(axes[own[0]])
        vector = pt.specify_broadcastable(variable, *ones) if ones else variable
        order: list[Any] = [*own] or ["x"]
        vector = vector.dimshuffle(order)
        return vector[tuple(self._places[axes[k]] for k in own)] if own else vector

    def _reads_matrix(self, variable: Variable, length: int) -> bool:
        """Whether a row of data belongs to each of its entries, which would be repeated."""
        read = [i for v in self.known.dependent([variable]) if v.owner for i in v.owner.inputs]
        return any(
            not self.known.depends(i)
            and getattr(i.type, "ndim", 0) > 1
            and length in (shape := self.known.shape(i))
            and np.prod(shape, dtype=int) > length
            for i in read
        )
