"""The function of the linear predictors, with every parameter in it a vector over the rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytensor.tensor as pt

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    AllocEmpty,
    Blockwise,
    Dot,
    Elemwise,
    Variable,
    clone_replace,
    indices_of,
    toposort,
    vectorize_graph,
    vectorized_node,
)
from pymc_austerity.model.cut.protocols import operation_in_words
from pymc_austerity.model.predictors.linear import GraphFacts

__all__ = ["CannotLiftError", "lifted"]


class CannotLiftError(Exception):
    """An operation has no rule; the message says which, as half a sentence."""


def lifted(
    rows: Variable,
    by_row: Mapping[Variable, Variable],
    batched: Mapping[Variable, Variable],
    facts: GraphFacts,
) -> Variable:
    """Rebuild a graph from vectors over the rows in place of parameters.

    Parameters
    ----------
    rows : variable, shape (m,)
        The graph.
    by_row : mapping of variable to variable
        Replacements of linear variables with rows.
    batched : mapping of variable to variable
        For linear variables without rows, the same with the rows as a first axis.
    facts : GraphFacts
        Properties of the graph.

    Returns
    -------
    variable, shape (m,)

    Raises
    ------
    CannotLiftError
        An operation mixes parameters and rows in a way that has no rule.
    """
    new = dict(by_row)
    nodes = [
        node
        for node in toposort([rows], blockers=[*by_row, *batched])
        if any(facts.depends(i) for i in node.inputs)
        and any(facts.depends(o) for o in node.outputs)
    ]
    with_rows = [n for n in nodes if any(facts.axis(o) is not None for o in n.outputs)]
    wide = _widened(with_rows, batched, facts)
    for node in with_rows:
        inputs = [new.get(i, i) for i in node.inputs]
        outputs = _rebuilt(node, inputs, wide, facts)
        new.update(zip(node.outputs, outputs, strict=True))
    if rows not in new:
        raise CannotLiftError("its log-likelihood does not depend on the rows")
    return new[rows]


def _widened(
    nodes: Sequence[Any], batched: Mapping[Variable, Variable], facts: GraphFacts
) -> dict[Variable, Variable]:
    """Whatever parameters without rows nodes with rows read, with the rows as a first axis."""
    needed = list(
        dict.fromkeys(
            i for node in nodes for i in node.inputs if facts.depends(i) and facts.axis(i) is None
        )
    )
    if not needed:
        return {}
    for node in toposort(needed, blockers=list(batched)):
        if any(facts.reads_rows(i) and facts.axis(i) is not None for i in node.inputs):
            raise CannotLiftError(f"{operation_in_words(node.op)} runs over all rows")
    try:
        wide = vectorize_graph(needed, {**batched, **_empty_arrays(needed, batched)})
        return dict(zip(needed, wide, strict=True))
    except NotImplementedError as error:
        raise CannotLiftError("an operation on its parameters has no vectorized form") from error


def _empty_arrays(
    needed: Sequence[Variable], batched: Mapping[Variable, Variable]
) -> dict[Variable, Variable]:
    """Arrays that are filled later, with the rows as a first axis.

    PyTensor would make one for each row, in a loop over the rows.
    """
    of_one_row = {variable: rows[0] for variable, rows in batched.items()}
    n_rows = next(iter(batched.values())).shape[0]
    found = {}
    for node in toposort(needed, blockers=list(batched)):
        if isinstance(node.op, AllocEmpty):
            shape = clone_replace(node.inputs, of_one_row, rebuild_strict=False)
            found[node.outputs[0]] = pt.empty((n_rows, *shape), dtype=node.op.dtype)
    return found


def _rebuilt(
    node: Any, inputs: list[Variable], wide: Mapping[Variable, Variable], facts: GraphFacts
) -> list[Variable]:
    """Outputs of a node with rows from its new inputs."""
    if not any(i in wide for i in node.inputs):
        return list(node.op.make_node(*inputs).outputs)
    axis = facts.axis(node.outputs[0])
    assert axis is not None
    ndim = node.outputs[0].type.ndim
    op = node.op
    if isinstance(op, Elemwise | Alloc):
        inputs = [_aligned(wide[i], axis, ndim) if i in wide else i for i in inputs]
        return list(op.make_node(*inputs).outputs)
    if isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot)):
        return [_product(node, inputs, wide, axis, facts)]
    if isinstance(op, ADVANCED_SUBTENSOR_OPS) and node.inputs[0] in wide:
        return [_picked(node, inputs, wide, axis, facts)]
    return _one_by_one(node, inputs, wide, axis, facts)


def _one_by_one(
    node: Any,
    inputs: list[Variable],
    wide: Mapping[Variable, Variable],
    axis: int,
    facts: GraphFacts,
) -> list[Variable]:
    """Outputs for any operation: applied to every row by itself, as if it were the only one."""
    first = []
    for old, new in zip(node.inputs, inputs, strict=True):
        own = facts.axis(old)
        if own is not None:
            new = pt.expand_dims(pt.moveaxis(new, own, 0), own + 1)
        first.append(wide.get(old, new))
    try:
        outputs = vectorized_node(node, first)
    except NotImplementedError as error:
        raise CannotLiftError(f"{operation_in_words(node.op)} mixes parameters and rows") from error
    return [_aligned(o, axis, old.type.ndim) for o, old in zip(outputs, node.outputs, strict=True)]


def _aligned(wide: Variable, axis: int, ndim: int) -> Variable:
    """Rows moved from the front to the axis along which there was one entry or none."""
    missing = ndim - (wide.type.ndim - 1)
    if missing:
        wide = wide.dimshuffle(0, *["x"] * missing, *range(1, wide.type.ndim))
    if wide.type.shape[axis + 1] != 1:
        wide = pt.specify_shape(wide, [1 if k == axis + 1 else None for k in range(ndim + 1)])
    kept = [k for k in range(1, ndim + 1) if k != axis + 1]
    return wide.dimshuffle(*kept[:axis], 0, *kept[axis:])


def _product(
    node: Any,
    inputs: list[Variable],
    wide: Mapping[Variable, Variable],
    axis: int,
    facts: GraphFacts,
) -> Variable:
    """A matrix with rows times a matrix that is now another one for every row."""
    left, right = inputs
    ndims = left.type.ndim, right.type.ndim
    if max(ndims) > 2 or axis != 0 or left in wide or facts.axis(node.inputs[0]) != 0:
        return _one_by_one(node, inputs, wide, axis, facts)[0]
    matrix = wide[right]  # (m, q) or (m, q, c)
    if ndims[1] == 1:
        return (left * matrix).sum(axis=1)
    return (left[:, :, None] * matrix).sum(axis=1)


def _picked(
    node: Any,
    inputs: list[Variable],
    wide: Mapping[Variable, Variable],
    axis: int,
    facts: GraphFacts,
) -> Variable:
    """Rows pick from vectors of their own."""
    operand = wide[node.inputs[0]]
    indices = indices_of(node.op.make_node(node.inputs[0], *inputs[1:]))
    vectors = [i for i in indices if not isinstance(i, slice)]
    leading = indices[: len(vectors)] == vectors
    if axis != 0 or not leading or any(i.type.ndim > 1 for i in vectors):
        return _one_by_one(node, inputs, wide, axis, facts)[0]
    numbers = pt.arange(operand.shape[0])
    return operand[(numbers, *indices)]
