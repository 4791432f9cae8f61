"""A log-density in terms of plain operations, ready to be cut."""

from collections.abc import Sequence

from pymc_austerity._pymc import (
    LogSoftmax,
    OpFromGraph,
    Softmax,
    Variable,
    ancestors,
    clone_replace,
    inner_outputs,
    lower_xtensor,
    toposort,
)
from pymc_austerity.errors import NotRowwiseError

__all__ = ["inlined"]

_DEEPEST = 50


def inlined(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace labeled and composite operations by the operations they are made of.

    Softmax and log-softmax stay: they have rules of their own.
    """
    current = lower_xtensor(outputs)
    for _ in range(_DEEPEST):
        contents: dict[Variable, Variable] = {}
        for node in toposort(current):
            if isinstance(node.op, OpFromGraph) and not isinstance(node.op, Softmax | LogSoftmax):
                arguments = dict(zip(node.op.inner_inputs, node.inputs, strict=True))
                outer = zip(node.outputs, inner_outputs(node.op, arguments), strict=True)
                contents.update(outer)
        if not contents:
            return current
        current = clone_replace(current, _outermost(contents, current), rebuild_strict=False)
    raise NotRowwiseError(
        "the log-likelihood has operations within operations more than 50 deep, which cannot be "
        "followed to the rows: use NUTS for this model."
    )


def _outermost(
    contents: dict[Variable, Variable], outputs: Sequence[Variable]
) -> dict[Variable, Variable]:
    """Replacements that do not depend on other replacements, so that none is undone by another."""
    used = set(ancestors(outputs))
    return {
        variable: content
        for variable, content in contents.items()
        if variable in used
        and not any(a in contents and a in used for a in ancestors(variable.owner.inputs))
    }
