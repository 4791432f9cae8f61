"""Checks of parameters: a failed one gives a log-density of -inf."""

import math
from typing import Any

from pymc_austerity._pymc import CheckAndRaise, CheckParameterValue
from pymc_austerity.model.kernel.apply import apply
from pymc_austerity.model.kernel.cells import Cells, elementwise
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Scalar, constant
from pymc_austerity.model.kernel.unrolled import cells_of


@cells_of.register(CheckAndRaise)
def assertion(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """A formula cannot raise; conditions that are true already need no check."""
    operand, *conditions = operands
    if all(_is_true(c.only) for c in conditions):
        return operand
    raise NoKernelError(f"the assertion {op.msg!r} has no rule")


def _is_true(condition: Scalar) -> bool:
    """Whether a condition always holds: PyTensor compares lengths of an axis with themselves."""
    if condition.name == "EQ" and len({a.kind for a in condition.arguments} - {"f"}) == 1:
        return condition.arguments[0] == condition.arguments[1]
    return bool(condition.is_constant and condition.value)


@cells_of.register(CheckParameterValue)
def check(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Minus infinity where a condition fails, as PyMC's own compilation has it."""
    if not op.can_be_replaced_by_ninf:
        return assertion(op, node, operands)
    operand, *conditions = operands
    passed = apply("AND", [apply("Cast", [c.only], "b") for c in conditions], "b")

    def checked(scalars: list[Scalar]) -> Scalar:
        return apply("Switch", [passed, *scalars, constant(-math.inf)], "f")

    return elementwise(checked, [operand])
