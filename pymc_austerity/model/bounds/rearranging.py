"""Operations that only move entries about: they act on every Taylor coefficient alike."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    DimShuffle,
    Join,
    MakeVector,
    Reshape,
    ScalarFromTensor,
    SpecifyShape,
    Subtensor,
    TensorFromScalar,
    Variable,
)
from pymc_austerity.model.bounds.intervals import Interval, point
from pymc_austerity.model.bounds.jets import Jet

__all__ = ["is_rearrangement", "rearrange"]

_REARRANGEMENTS: tuple[type, ...] = (
    Alloc, DimShuffle, Join, MakeVector, Reshape, ScalarFromTensor, SpecifyShape, Subtensor,
    TensorFromScalar, *ADVANCED_SUBTENSOR_OPS,
)  # fmt: skip


def is_rearrangement(op: Any) -> bool:
    """Tell whether every entry of the result is an entry of an input."""
    return isinstance(op, _REARRANGEMENTS)


def rearrange(node: Any, known: Mapping[Variable, Jet], fixed: Mapping[Variable, NDArray]) -> Jet:
    """Jet of the result, by the operation itself on each Taylor coefficient.

    Parameters
    ----------
    node : Apply
        Of a rearrangement.
    known : dict of variable to Jet
        Jets of its inputs.
    fixed : dict of variable to array
        Values, in their own types, of inputs that do not depend on the predictors.
    """
    varying = [v for v in node.inputs if v in known and v not in fixed]
    zero = (0,) * len(next(iter(known[varying[0]])))
    shapes = {v: known[v][zero].lower.shape for v in varying}
    indices = dict.fromkeys(m for v in varying for m in known[v])
    result = {}
    for m in indices:
        ends = []
        for end in (0, 1):
            inputs = [
                _coefficient(known[v], m, end, shapes[v]) if v in shapes else _of(v, fixed, m, zero)
                for v in node.inputs
            ]
            if end == 1 and all(known[v][m].is_point for v in varying if m in known[v]):
                break
            storage: list[list] = [[None]]
            node.op.perform(node, inputs, storage)
            ends.append(np.asarray(storage[0][0], dtype=np.float64))
        result[m] = point(ends[0]) if len(ends) == 1 else Interval(*ends)
    return result


def _coefficient(jet: Jet, m: tuple[int, ...], end: int, shape: tuple[int, ...]) -> NDArray:
    return jet[m][end] if m in jet else np.zeros(shape)


def _of(v: Variable, fixed: Mapping[Variable, NDArray], m: tuple, zero: tuple) -> Any:
    """Value of an input that does not vary: its derivatives are zero unless it is an index."""
    value = np.asarray(fixed[v])
    if m == zero or value.dtype.kind in "iub":
        return value
    return np.zeros_like(value)
