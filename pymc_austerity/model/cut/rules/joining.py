"""Pieces put side by side, along other axes or end to end along the rows."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import Join, Variable, join_arguments
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.registry import rows_of


@rows_of.register(Join)
def join(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``concatenate([x, y], axis=1)[i] == concatenate([x[i], y[i]])``."""
    axis, pieces = join_arguments(wanted.node)
    if axis % wanted.ndim == wanted.axis:
        return _end_to_end(pieces, cut, wanted)
    taken = [cut.take(piece, wanted.axis, wanted.selection) for piece in pieces]
    return pt.join(axis, *taken)


def _end_to_end(pieces: list[Variable], cut: CutContext, wanted: Wanted) -> Variable:
    """Every piece is evaluated at every row, at any of its rows where the row is not its own."""
    lengths = [cut.known.shape(piece)[wanted.axis] for piece in pieces]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = cut.selections.rows(wanted.selection)
    joined = None
    for k, (piece, length, start) in enumerate(zip(pieces, lengths, starts, strict=False)):
        if length == 0:
            continue
        key = (wanted.output, k, wanted.selection)
        own = cut.selections.new(np.clip(rows - start, 0, length - 1), key)
        taken = cut.take_or_keep(piece, wanted.axis, own)
        if joined is None:
            joined = taken
        else:
            here = cut.mask(rows >= start, "part", ("part", *key), wanted)
            joined = pt.switch(here, taken, joined)
    return joined
