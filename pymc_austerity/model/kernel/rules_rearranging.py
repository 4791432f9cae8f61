"""Operations that move entries, and entries picked by numbers of the row."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    indices_of,
    is_none,
)
from pymc_austerity.model.kernel.cells import (
    Cells,
    LayoutCells,
    cells_of,
    filled,
    kind_of,
    one_axis,
)
from pymc_austerity.model.kernel.formula import apply, cast, looked_up
from pymc_austerity.model.kernel.scalar import Dependence, Kind, NoKernelError, Scalar, constant
from pymc_austerity.model.rearranging import (
    FEW,
    MANY,
    OF_ALL,
    OF_ONE,
    OF_TWO,
    moved_inputs,
    numbered,
    on_axis,
    run_on_numbers,
)


class _Numbers:
    """Numbers for the entries of some cells: that of the cell, plus a multiple for the row.

    Parameters
    ----------
    cells : Cells
        Those of the inputs of an operation whose entries it moves.
    """

    def __init__(self, *cells: Cells) -> None:
        self.cells = cells
        self.scalars: list[Scalar] = [s for each in cells for s in each.scalars.flat]
        alike = (Dependence.NOTHING, Dependence.POINT)
        has_rows = [each.row_axis is not None for each in cells for _ in each.scalars.flat]
        pairs = zip(has_rows, self.scalars, strict=True)
        self._is_alike = np.array([not has or s.sources in alike for has, s in pairs], dtype=bool)

    def arrays(self, n_rows: int) -> list[NDArray[np.int64]]:
        """Numbers in the shapes that the variables have for so many rows."""
        shapes = [each.scalars.shape for each in self.cells]
        return numbered(shapes, [each.row_axis for each in self.cells], n_rows)

    def read(self, numbers: NDArray[np.int64], axis: int | None) -> NDArray[np.int64]:
        """Cells that an output consists of, in all rows.

        Raises
        ------
        NoKernelError
            A row reads another one, and not all rows are alike.
        """
        row, cell = np.divmod(numbers, max(len(self.scalars), 1))
        own = -1 if axis is None else on_axis(np.arange(cell.shape[axis]), axis, cell.ndim)
        if not ((row == own) | self._is_alike[cell]).all():
            raise NoKernelError("rows are picked out of the rows")
        return cell

    def moved_by(
        self, run: Callable[[int], NDArray[np.int64]]
    ) -> tuple[NDArray[np.int64], int | None]:
        """Cells that the output of an operation consists of in each row, and its axis of rows."""
        few, many = run(FEW), run(MANY)
        axis = one_axis(few, many)
        cell = self.read(many, axis)
        first = cell if axis is None else np.take(cell, [0], axis)
        if (cell != first).any():
            raise NoKernelError("rows differ in what they read")
        return first, axis


def _run(
    node: Any, operands: Sequence[Cells], numbers: Mapping[int, NDArray], n_rows: int
) -> NDArray[np.int64]:
    """An operation on numbers in the place of some inputs; the others are known for these rows."""
    values = [
        numbers[k] if k in numbers else operand.value(n_rows)  # type: ignore[attr-defined]
        for k, operand in enumerate(operands)
    ]
    try:
        return run_on_numbers(node, values)
    except (AssertionError, IndexError, TypeError, ValueError) as error:
        raise NoKernelError("the axis of the rows meets others") from error


def _chosen_by_row(node: Any, operands: Sequence[Cells]) -> list[int]:
    """Positions of inputs that choose entries and are not the same for all rows."""
    moved = moved_inputs(node)
    return [k for k, c in enumerate(operands) if k not in moved and not isinstance(c, LayoutCells)]


def _rearranged(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """By the operation itself, on the numbers of the cells."""
    places, kind = moved_inputs(node), kind_of(node.outputs[0].type.dtype)
    moved = _Numbers(*(operands[k] for k in places))
    if chosen := _chosen_by_row(node, operands):
        return _picked_by_row(node, operands, moved, chosen, kind)

    def run(n_rows: int) -> NDArray[np.int64]:
        return _run(node, operands, dict(zip(places, moved.arrays(n_rows), strict=True)), n_rows)

    cell, axis = moved.moved_by(run)
    return Cells(filled(cell.shape, [cast(moved.scalars[k], kind) for k in cell.flat]), axis)


def _set_or_added(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Entries at positions that all rows share, set or added to."""
    if _chosen_by_row(node, operands):
        raise NoKernelError("entries are set at positions that differ by row")
    if op.set_instead_of_inc:
        return _rearranged(op, node, operands)
    own, values = operands[:2]
    moved, kind = _Numbers(own, values), kind_of(node.outputs[0].type.dtype)

    def run(n_rows: int) -> NDArray[np.int64]:
        numbers, new = moved.arrays(n_rows)
        zeros = np.zeros_like(numbers)
        n_times = _run(node, operands, {0: zeros, 1: np.ones_like(new)}, n_rows)
        if n_times.max(initial=0) > 1:
            raise NoKernelError("an entry is added to more than once")
        return np.where(n_times == 1, _run(node, operands, {0: zeros, 1: new}, n_rows), numbers)

    cell, axis = moved.moved_by(run)
    scalars = [
        apply("Add", [before, moved.scalars[k]], kind) if k >= own.scalars.size else before
        for before, k in zip(own.scalars.flat, cell.flat, strict=True)
    ]
    return Cells(filled(cell.shape, scalars), axis)


for _kind in (*OF_ONE, *OF_ALL):
    cells_of.register(_kind)(_rearranged)
for _kind in OF_TWO:
    cells_of.register(_kind)(_set_or_added)


def _picked_by_row(
    node: Any, operands: list[Cells], moved: _Numbers, chosen: list[int], kind: Kind
) -> Cells:
    """Entries at positions that differ by row: one of those at all possible positions."""
    (operand,), axes = moved.cells, _axes_of_indices(node)
    if any(operands[k].row_axis is None or axes.get(k) == operand.row_axis for k in chosen):
        raise NoKernelError("a position that is computed")
    lengths = [operand.scalars.shape[axes[k]] for k in chosen]

    def numbered(which: int, index: _Numbers) -> Callable[[int], NDArray[np.int64]]:
        """From a number of rows to the entry of an index that chooses each entry."""

        def run(n_rows: int) -> NDArray[np.int64]:
            (numbers,) = index.arrays(n_rows)
            shape = list(operand.shape(n_rows))
            shape[axes[which]] = int(numbers.max(initial=0)) + 1
            every = on_axis(np.arange(shape[axes[which]]), axes[which], operand.ndim)
            zeros = {k: np.zeros(operands[k].shape(n_rows), dtype=int) for k in chosen}
            replaced = zeros | {0: np.broadcast_to(every, shape), which: numbers}
            return _run(node, operands, replaced, n_rows)

        return run

    indices = [_Numbers(operands[k]) for k in chosen]
    found = [index.moved_by(numbered(k, index)) for k, index in zip(chosen, indices, strict=True)]
    cells, axis = [cell for cell, _ in found], found[0][1]
    assert axis is not None
    levels = np.unravel_index(np.arange(prod(lengths)), lengths)  # a row for each combination
    replaced = {0: moved.arrays(levels[0].size)[0]}
    for k, level in zip(chosen, levels, strict=True):
        column = on_axis(level, operands[k].row_axis or 0, operands[k].ndim)
        replaced[k] = np.broadcast_to(column, operands[k].shape(level.size))
    table = moved.read(_run(node, operands, replaced, levels[0].size), axis)
    table = np.moveaxis(table, axis, 0).reshape(*lengths, -1)
    scalars = []
    for number, places in enumerate(zip(*(cell.flat for cell in cells), strict=True)):
        options = filled(lengths, [moved.scalars[k] for k in table[..., number].flat])
        positions = [index.scalars[k] for index, k in zip(indices, places, strict=True)]
        scalars.append(_picked(options, [cast(p, "i") for p in positions], kind))
    return Cells(filled(cells[0].shape, scalars), axis)


def _axes_of_indices(node: Any) -> dict[int, int]:
    """From positions of inputs that are indices to the axes of the operand that they index."""
    axis, axes, places = 0, {}, list(range(1, len(node.inputs)))
    for index in indices_of(node):
        if is_none(index):
            continue
        place = next((k for k in places if node.inputs[k] is index), None)
        if place is not None:
            axes[place] = axis
            places.remove(place)
        axis += index.ndim if getattr(index, "dtype", "") == "bool" else 1
    return axes


def _picked(table: NDArray[Any], positions: list[Scalar], kind: Kind) -> Scalar:
    """Entry at computed positions: of an array of known numbers, or by a chain of comparisons."""
    position, *others = positions
    options = [_picked(rest, others, kind) for rest in table] if others else list(table)
    if (found := looked_up(options, position, kind)) is not None:
        return found
    result = options[-1]
    for k in range(len(options) - 2, -1, -1):
        hits = [apply("EQ", [position, constant(n)], "b") for n in (k, k - len(options))]
        result = apply("Switch", [apply("OR", hits, "b"), options[k], result], kind)
    return result
