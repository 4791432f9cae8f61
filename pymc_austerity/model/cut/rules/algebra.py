"""Matrix products, solves, and operations repeated over batch axes."""

from typing import Any

from pymc_austerity._pymc import Blockwise, Dot, Variable, batched_index
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut, in_words
from pymc_austerity.model.cut.registry import rows_of

_SOLVES = {"Solve", "SolveTriangular", "CholeskySolve", "CholSolve", "LUSolve"}
"""Operations ``f(A, B)`` that treat the columns of ``B`` one by one."""


@rows_of.register(Dot)
def dot(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``(X @ b)[i] == X[i] @ b``, and ``(a @ X.T)[i] == a @ X.T[:, i]``."""
    left, right = wanted.node.inputs
    if wanted.axis == 0 and left.type.ndim == 2:
        return op(cut.take(left, 0, wanted.selection), cut.keep(right))
    return op(cut.keep(left), cut.take(right, right.type.ndim - 1, wanted.selection))


@rows_of.register(Blockwise)
def blockwise(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
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


def _along_core_axis(op: Any, cut: CutContext, wanted: Wanted, label: str) -> list[Variable]:
    """Operands for rows along the core axis with that label in the signature."""
    core_op = type(op.core_op).__name__
    having = [(k, core.index(label)) for k, core in enumerate(op.inputs_sig) if label in core]
    by_column = core_op == "Dot" or (core_op in _SOLVES and [k for k, _ in having] == [1])
    if not by_column or len(having) != 1 or op.inputs_sig[having[0][0]].count(label) != 1:
        raise CannotCut(f"{in_words(op)} mixes all rows")
    ((which, position),) = having
    return [
        cut.take(operand, operand.type.ndim - len(core) + position, wanted.selection)
        if k == which
        else cut.keep(operand)
        for k, (operand, core) in enumerate(zip(wanted.node.inputs, op.inputs_sig, strict=True))
    ]
