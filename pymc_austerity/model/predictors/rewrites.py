"""Rewrites of the row graph: indices pushed down, the function above the predictors lifted out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    AllocEmpty,
    DimShuffle,
    Dot,
    Elemwise,
    Join,
    Variable,
    clone_replace,
    indices_of,
    is_dot,
    join_arguments,
    rebuilt,
    toposort,
    vectorized_node,
)
from pymc_austerity.model.cut.cut import operation_in_words
from pymc_austerity.model.predictors.linear import GraphFacts, Walk


def pushed(rows: Variable, walk: Walk) -> Variable:
    """Let rows pick parameters before they are transformed, not after.

    By identities such as ``exp(x)[index] == exp(x[index])``: a function of a vector with one entry
    per group then is, for a row, a function of the entry that it picks.

    Parameters
    ----------
    rows : variable, shape (m,)
        Log-likelihoods of rows.
    walk : Walk
        What is linear in the graph.

    Returns
    -------
    variable
        The same variable where there is nothing to push.
    """

    def pick(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        if not isinstance(node.op, ADVANCED_SUBTENSOR_OPS) or not _is_pick(node, walk):
            return None
        try:
            new = _picked(node.inputs[0], indices_of(node), walk)
        except _StaysError:
            return None
        return [new.astype(node.outputs[0].dtype)]

    return rebuilt([rows], pick)[0]


class _StaysError(Exception):
    """Rows cannot pick from the inputs of an operation."""


def _is_pick(node: Any, walk: Walk) -> bool:
    """Whether rows pick from something without rows that is beyond linear."""
    operand, *indices = node.inputs
    facts = walk.facts
    return (
        walk.is_beyond(operand)
        and facts.axis(operand) is None
        and not any(facts.depends(i) for i in indices)
        and any(hasattr(i.type, "ndim") and facts.axis(i) is not None for i in indices)
    )


def _picked(operand: Variable, indices: list[Any], walk: Walk) -> Variable:
    """``operand[indices]`` in terms of the inputs of the operand."""
    node = operand.owner
    if node is None or not walk.is_beyond(operand):
        return operand[tuple(indices)]
    indices = [*indices, *[slice(None)] * (operand.type.ndim - len(indices))]
    others = [i for i in indices if not isinstance(i, Variable | int | np.integer)]
    if any(i != slice(None) for i in others):
        raise _StaysError
    for kind, through in _PUSHED:
        if isinstance(node.op, kind):
            return through(node, indices, walk)
    raise _StaysError


def _through_elemwise(node: Any, indices: list[Any], walk: Walk) -> Variable:
    shape, inputs = walk.facts.shape(node.outputs[0]), []
    for operand in node.inputs:
        own = [
            i if n == whole or isinstance(i, slice) else _zeros_like(i)
            for i, n, whole in zip(indices, walk.facts.shape(operand), shape, strict=True)
        ]
        inputs.append(_picked(operand, own, walk))
    return node.op(*inputs)


def _zeros_like(index: Any) -> Any:
    return pt.zeros_like(index) if isinstance(index, Variable) else 0


def _through_dimshuffle(node: Any, indices: list[Any], walk: Walk) -> Variable:
    """A transpose under one vector of indices; axes of length one need no index."""
    (operand,), order = node.inputs, node.op.new_order
    chosen = [k for k, i in enumerate(indices) if not isinstance(i, slice)]
    if len(chosen) == len(indices):
        inner: list[Any] = [0] * operand.type.ndim
        for k, axis in enumerate(order):
            if axis != "x":
                inner[axis] = indices[k]
        return _picked(operand, inner, walk)
    if len(chosen) != 1 or order[chosen[0]] == "x" or getattr(indices[chosen[0]], "ndim", 0) != 1:
        raise _StaysError
    inner = [slice(None)] * operand.type.ndim
    inner[order[chosen[0]]] = indices[chosen[0]]
    return _picked(operand, inner, walk).dimshuffle(order)


def _through_dot(node: Any, indices: list[Any], walk: Walk) -> Variable:
    """Rows and columns of a product are products of rows and columns."""
    left, right = node.inputs
    if (left.type.ndim, right.type.ndim) != (2, 2):
        raise _StaysError
    row, column = indices
    if isinstance(column, slice):
        return pt.dot(_picked(left, [row, column], walk), right)
    if isinstance(row, slice):
        return pt.dot(left, _picked(right, [row, column], walk))
    rows, columns = (
        _picked(x, [i, slice(None)], walk) for x, i in ((left, row), (right.T, column))
    )
    return (rows * columns).sum(axis=-1)


def _through_index(node: Any, indices: list[Any], walk: Walk) -> Variable:
    """A vector of indices picked from by another: ``x[a][b] == x[a[b]]``."""
    operand, *first = node.inputs
    inner = indices_of(node)
    is_simple = operand.type.ndim == len(indices) == len(inner) == 1
    if not is_simple or any(walk.facts.depends(i) for i in first):
        raise _StaysError
    positions = inner[0]
    if positions.dtype == "bool":  # a mask
        positions = pt.constant(np.flatnonzero(walk.facts.value(positions)))
    return _picked(operand, [positions[indices[0]]], walk)


_PUSHED: tuple[tuple[Any, Callable[..., Variable]], ...] = (
    (Elemwise, _through_elemwise),
    (DimShuffle, _through_dimshuffle),
    (Dot, _through_dot),
    (ADVANCED_SUBTENSOR_OPS, _through_index),
)


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
    wide = {**batched, **_empty_arrays(needed, batched)}
    try:
        for node in toposort(needed, blockers=list(wide)):
            if not wide.keys().isdisjoint(node.inputs):
                inputs = _of_one_length(node, [wide.get(i, i) for i in node.inputs], batched)
                wide.update(zip(node.outputs, vectorized_node(node, inputs), strict=True))
    except NotImplementedError as error:
        raise CannotLiftError("an operation on its parameters has no vectorized form") from error
    return {v: wide.get(v, v) for v in needed}


def _of_one_length(
    node: Any, inputs: list[Variable], batched: Mapping[Variable, Variable]
) -> list[Variable]:
    """Inputs with the rows as a first axis, where an operation joins some that have it to others.

    What PyTensor makes of others has a loop over the rows.
    """
    if not isinstance(node.op, Join):
        return inputs
    n_rows, joined = next(iter(batched.values())).shape[0], join_arguments(node)[1]
    return [
        pt.alloc(new, n_rows, *new.shape) if v in joined and new is v else new
        for v, new in zip(node.inputs, inputs, strict=True)
    ]


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
    found = None
    if is_dot(node) and axis == 0 and facts.axis(node.inputs[0]) == 0:
        found = _product(inputs, wide)
    elif isinstance(op, ADVANCED_SUBTENSOR_OPS) and axis == 0 and node.inputs[0] in wide:
        found = _picked_parameters(node, inputs, wide)
    return _one_by_one(node, inputs, wide, axis, facts) if found is None else [found]


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


def _product(inputs: list[Variable], wide: Mapping[Variable, Variable]) -> Variable | None:
    """A matrix with rows times a matrix that is now another one for every row."""
    left, right = inputs
    if max(left.type.ndim, right.type.ndim) > 2 or left in wide:
        return None
    matrix = wide[right]  # (m, q) or (m, q, c)
    return ((left if right.type.ndim == 1 else left[:, :, None]) * matrix).sum(axis=1)


def _picked_parameters(
    node: Any, inputs: list[Variable], wide: Mapping[Variable, Variable]
) -> Variable | None:
    """Rows pick from vectors of their own."""
    operand = wide[node.inputs[0]]
    indices = indices_of(node.op.make_node(node.inputs[0], *inputs[1:]))
    vectors = [i for i in indices if not isinstance(i, slice)]
    if indices[: len(vectors)] != vectors or any(i.type.ndim > 1 for i in vectors):
        return None
    return operand[(pt.arange(operand.shape[0]), *indices)]
