"""Rules for operations by element, along other axes than the rows, and in batches of rows."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    Alloc,
    AllocEmpty,
    ARange,
    Argmax,
    ArgSortOp,
    Blockwise,
    CAReduce,
    CheckAndRaise,
    CumOp,
    DimShuffle,
    Dot,
    Elemwise,
    Join,
    LogSoftmax,
    MakeVector,
    RandomVariable,
    Repeat,
    Reshape,
    ScalarFromTensor,
    Scan,
    SearchsortedOp,
    Softmax,
    SortOp,
    Subtensor,
    TensorFromScalar,
    Variable,
    axes_of,
    batched_index,
    indices_of,
    inner_outputs,
    join_arguments,
    random_generator_type,
    scalar_name,
    sorted_axis,
    vectorize_graph,
)
from pymc_austerity.model.cut.cut import (
    CannotCut,
    Cut,
    Wanted,
    operation_in_words,
    output_rows,
)
from pymc_austerity.model.cut.known import Known

_SOLVES = {"Solve", "SolveTriangular", "CholeskySolve", "CholSolve", "LUSolve"}
"""Operations ``f(A, B)`` that treat the columns of ``B`` one by one."""

_RECURRENT = ("n_mit_mot", "n_mit_sot", "n_sit_sot", "n_untraced_sit_sot", "as_while")
"""Attributes of a loop in which a step depends on another."""

ONE_BY_ONE = "generator of rows of "
"""How the names of generators begin with which rows are drawn one by one."""


def refuse_if_along_rows(op: Any, axis: Any, wanted: Wanted) -> None:
    """Refuse an operation that runs along the rows, or along the raveled array."""
    if wanted.axis in axes_of(axis, wanted.ndim):
        raise CannotCut(f"{operation_in_words(op)} runs over all rows")


@output_rows.register(Elemwise)
def _elementwise(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``f(x, y)[i] == f(x[i], y[i])``; what is broadcast along the rows is kept."""
    operands = [
        cut.take_or_keep(operand, wanted.axis, wanted.selection) for operand in wanted.node.inputs
    ]
    return op.make_node(*operands).outputs[wanted.index]


@output_rows.register(CAReduce)
@output_rows.register(Argmax)
def _reduction(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``x.sum(axis=1)[i] == x[i].sum()``: the rows are among the axes that are left."""
    (operand,) = wanted.node.inputs
    reduced = axes_of(op.axis, operand.type.ndim)
    left = [axis for axis in range(operand.type.ndim) if axis not in reduced]
    return op(cut.take(operand, left[wanted.axis], wanted.selection))


@output_rows.register(Softmax)
@output_rows.register(LogSoftmax)
@output_rows.register(CumOp)
@output_rows.register(SortOp)
@output_rows.register(ArgSortOp)
def _along_an_axis(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``softmax(x, axis=1)[i] == softmax(x[i])``, unless it runs along the rows."""
    is_sort = isinstance(op, SortOp | ArgSortOp)
    refuse_if_along_rows(op, sorted_axis(wanted.node) if is_sort else op.axis, wanted)
    operand, *rest = wanted.node.inputs
    return op(cut.take(operand, wanted.axis, wanted.selection), *rest)


@output_rows.register(SearchsortedOp)
def _searchsorted(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``searchsorted(knots, x)[i] == searchsorted(knots, x[i])``."""
    knots, operand, *sorter = wanted.node.inputs
    return op(cut.keep(knots), cut.take(operand, wanted.axis, wanted.selection), *sorter)


@output_rows.register(CheckAndRaise)
def _check(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """Give a row -inf where it fails a check, so that no row depends on the checks of others.

    Checks that do not depend on parameters are made now, and dropped.
    """
    operand, *conditions = wanted.node.inputs
    rows = cut.take(operand, wanted.axis, wanted.selection)
    for condition in conditions:
        if not (cut.known.depends(condition) or np.all(cut.known.value(condition))):
            raise CannotCut(f"the data do not pass a check of the model ({op})")
        for part in parts_of_check(condition, cut.known):
            if cut.known.depends(part) or not np.all(cut.known.value(part)):
                rows = pt.switch(_by_row(part, cut, wanted), rows, -float("inf")).astype(rows.dtype)
    return rows


def parts_of_check(condition: Variable, known: Known) -> list[Variable]:
    """Conditions that must all be true, as arrays where they depend on parameters."""
    node = condition.owner
    if node is None or not known.depends(condition):
        return [condition]
    passes_on = (
        isinstance(node.op, ScalarFromTensor | TensorFromScalar | MakeVector)
        or (isinstance(node.op, DimShuffle) and condition.type.ndim <= 1)
        or (scalar_name(node) == "AND" and condition.type.ndim == 0)
    )
    inputs = join_arguments(node)[1] if isinstance(node.op, Join) else node.inputs * passes_on
    return [part for i in inputs for part in parts_of_check(i, known)] or [condition]


def _by_row(condition: Variable, cut: Cut, wanted: Wanted) -> Variable:
    """A condition per row, in the position of the rows of what is wanted."""
    for axis, length in enumerate(cut.known.shape(condition)):
        rows = cut.take_or_none(condition, axis, wanted.selection) if length == cut.n_rows else None
        if rows is not None:
            others = [k for k in range(rows.type.ndim) if k != axis]
            met = pt.all(rows, axis=others) if others else rows
            return met.dimshuffle([0 if k == wanted.axis else "x" for k in range(wanted.ndim)])
    return pt.all(cut.keep(condition)) if condition.type.ndim else cut.keep(condition)


@output_rows.register(Dot)
def _dot(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``(X @ b)[i] == X[i] @ b``, and ``(a @ X.T)[i] == a @ X.T[:, i]``."""
    left, right = wanted.node.inputs
    if wanted.axis == 0 and left.type.ndim == 2:
        return op(cut.take(left, 0, wanted.selection), cut.keep(right))
    return op(cut.keep(left), cut.take(right, right.type.ndim - 1, wanted.selection))


@output_rows.register(Blockwise)
def _blockwise(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``f(x)[i] == f(x[i])`` over batch axes; over core axes only for products and solves."""
    if (plain := batched_index(wanted.node)) is not None:
        return cut.take(plain, wanted.axis, wanted.selection)
    signature = op.outputs_sig[wanted.index]
    n_batch_axes = wanted.ndim - len(signature)
    if wanted.axis < n_batch_axes:
        operands = []
        for operand, core in zip(wanted.node.inputs, op.inputs_sig, strict=True):
            missing = n_batch_axes - (operand.type.ndim - len(core))
            operands.append(cut.take_or_keep(operand, wanted.axis - missing, wanted.selection))
    else:
        operands = _along_core_axis(op, cut, wanted, signature[wanted.axis - n_batch_axes])
    return op.make_node(*operands).outputs[wanted.index]


def _along_core_axis(op: Any, cut: Cut, wanted: Wanted, label: str) -> list[Variable]:
    """Operands for rows along the core axis with that label in the signature."""
    core_op = type(op.core_op).__name__
    having = [(k, core.index(label)) for k, core in enumerate(op.inputs_sig) if label in core]
    by_column = core_op == "Dot" or (core_op in _SOLVES and [k for k, _ in having] == [1])
    if not by_column or len(having) != 1 or op.inputs_sig[having[0][0]].count(label) != 1:
        raise CannotCut(f"{operation_in_words(op)} mixes all rows")
    ((which, position),) = having
    return [
        cut.take(operand, operand.type.ndim - len(core) + position, wanted.selection)
        if k == which
        else cut.keep(operand)
        for k, (operand, core) in enumerate(zip(wanted.node.inputs, op.inputs_sig, strict=True))
    ]


@output_rows.register(Scan)
def _scan(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """Replace a loop without recurrence by its body applied to all rows at once."""
    if wanted.axis != 0 or any(getattr(op.info, name) for name in _RECURRENT):
        raise CannotCut("a loop (scan) carries values from one step to the next")
    sequences = op.outer_seqs(wanted.node.inputs)
    fixed = op.outer_non_seqs(wanted.node.inputs)
    entries = {inner: inner.type() for inner in op.inner_seqs(op.inner_inputs)}
    constants = dict(zip(op.inner_non_seqs(op.inner_inputs), fixed, strict=True))
    body = inner_outputs(op, constants | entries)[wanted.index]
    n_steps = cut.known.shape(wanted.output)[0]
    rows = {
        entry: sequence[:n_steps]
        for entry, sequence in zip(entries.values(), sequences, strict=True)
    }
    _refuse_lengths_by_row(body, list(rows))
    return cut.take(vectorize_graph(body, rows), 0, wanted.selection)


def _refuse_lengths_by_row(body: Variable, entries: list[Variable]) -> None:
    """Refuse a body with arrays whose lengths depend on values of the row."""
    known = Known(entries, {})
    for variable in known.dependent([body]):
        if variable.owner is not None and any(map(known.depends, _lengths(variable.owner))):
            raise CannotCut("a loop (scan) makes an array whose length differs from row to row")


def _lengths(node: Any) -> list[Variable]:
    """Inputs of an operation that determine the shape of its output."""
    if isinstance(node.op, ARange | AllocEmpty):
        return list(node.inputs)
    if isinstance(node.op, Alloc | Reshape | Repeat):
        return list(node.inputs[1:])
    if isinstance(node.op, Scan):
        return list(node.inputs[:1])
    if isinstance(node.op, Subtensor):
        slices = [index for index in indices_of(node) if isinstance(index, slice)]
        bounds = [bound for s in slices for bound in (s.start, s.stop, s.step)]
        return [bound for bound in bounds if isinstance(bound, Variable)]
    return []


@output_rows.register(RandomVariable)
def _drawn(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """Rows of a sample are a sample with rows of the parameters.

    Its generator is named after the operation, so that one that was cut twice can be found.
    """
    node, rows, n_batch = wanted.node, wanted.selection.rows, wanted.ndim - op.ndim_supp
    if wanted.axis >= n_batch:
        raise CannotCut(f"{operation_in_words(op)} draws all rows together")
    if rows is not None:
        if np.array_equal(rows, np.arange(cut.known.shape(wanted.output)[wanted.axis])):
            return cut.take(wanted.output, wanted.axis)
        if np.unique(rows).size < rows.size:
            raise CannotCut(f"several rows read the same draw of {operation_in_words(op)}")
    parameters = [
        cut.take_or_keep(
            parameter, wanted.axis - n_batch + parameter.type.ndim - ndim, wanted.selection
        )
        for parameter, ndim in zip(op.dist_params(node), op.ndims_params, strict=True)
    ]
    lengths = cut.lengths(cut.known.shape(wanted.output)[:n_batch], wanted.axis)
    size = pt.stack([pt.as_tensor(length, dtype="int64") for length in lengths])
    generator = random_generator_type(f"{ONE_BY_ONE}{id(node)}")
    return op.make_node(generator, size, *parameters).outputs[wanted.index]
