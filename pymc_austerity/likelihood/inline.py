"""A log-density in terms of plain operations on the full data, ready to be cut."""

from collections.abc import Sequence

import pymc as pm

from pymc_austerity._pymc import (
    LogSoftmax,
    MinibatchOp,
    OpFromGraph,
    Softmax,
    Variable,
    ancestors,
    clone_replace,
    inner_outputs,
    lower_xtensor,
    remove_minibatched_nodes,
    toposort,
)
from pymc_austerity.errors import NotRowwiseError

__all__ = ["inlined", "on_full_data"]

_DEEPEST = 50


def on_full_data(model: pm.Model) -> pm.Model:
    """Undo ``pm.Minibatch``: the same model on its full data, or the model itself.

    Notes
    -----
    The log-likelihood of a minibatch is scaled by ``total_size``; that of the full data is not.
    """
    graphs = [*model.observed_RVs, *model.potentials, *model.rvs_to_values.values()]
    if not any(_is_minibatch(variable) for variable in ancestors(graphs)):
        return model
    return remove_minibatched_nodes(model)


def _is_minibatch(variable: Variable) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, MinibatchOp)


def inlined(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace labelled operations and operations made of others by what they are made of.

    Softmax and log-softmax stay: they have rules of their own.
    """
    current = lower_xtensor(outputs)
    for _ in range(_DEEPEST):
        contents = {}
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
