"""Loops over the rows in which no row depends on another."""

from typing import Any

from pymc_austerity._pymc import (
    Alloc,
    AllocEmpty,
    ARange,
    Repeat,
    Reshape,
    Scan,
    Subtensor,
    Variable,
    indices_of,
    inner_outputs,
    vectorize_graph,
)
from pymc_austerity.model.cut.known import Known
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut
from pymc_austerity.model.cut.registry import rows_of

_RECURRENT = ("n_mit_mot", "n_mit_sot", "n_sit_sot", "n_untraced_sit_sot", "as_while")
"""Attributes of a loop in which a step depends on another."""


@rows_of.register(Scan)
def scan(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
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
