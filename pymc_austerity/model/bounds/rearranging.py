"""Operations that move entries about or add them up: they act on every coefficient alike."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_INC_SUBTENSOR_OPS,
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    Constant,
    CumOp,
    DimShuffle,
    IncSubtensor,
    Join,
    MakeVector,
    Reshape,
    ScalarFromTensor,
    SpecifyShape,
    Subtensor,
    TensorFromScalar,
    Variable,
    join_arguments,
)
from pymc_austerity.model.operations.intervals import Interval, point
from pymc_austerity.model.operations.jets import Jet

__all__ = ["is_rearrangement", "rearrange"]

_OF_ONE: tuple[type, ...] = (
    Alloc, DimShuffle, Reshape, ScalarFromTensor, SpecifyShape, Subtensor, TensorFromScalar,
    *ADVANCED_SUBTENSOR_OPS,
)  # fmt: skip
_OF_TWO: tuple[type, ...] = (IncSubtensor, *ADVANCED_INC_SUBTENSOR_OPS)


def is_rearrangement(op: Any) -> bool:
    """Tell whether every entry of the result is an entry, or a sum of entries, of the inputs."""
    is_sum = isinstance(op, CumOp) and op.mode == "add"
    return is_sum or isinstance(op, (*_OF_ONE, *_OF_TWO, Join, MakeVector))


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

    Raises
    ------
    NotImplementedError
        Entries are chosen by something that is not among the data.
    """
    entries = _entries(node)
    zero = (0,) * len(next(iter(known[entries[0]])))
    others = [v for v in node.inputs if v not in entries]
    chosen = {v: _chosen(v, fixed) for v in others}
    is_sure = all(known[v][zero].is_point for v in others if v in known)
    result, exact = {}, _in_double_precision(node, entries)
    for m in dict.fromkeys(m for v in entries for m in known[v]):
        coefficients = [known[v].get(m) for v in entries]
        n_ends = 1 if all(c is None or c.is_point for c in coefficients) else 2
        ends = []
        for end in range(n_ends):
            values = {
                v: np.zeros(known[v][zero].lower.shape) if c is None else c[end]
                for v, c in zip(entries, coefficients, strict=True)
            }
            storage: list[list] = [[None]]
            exact.op.perform(exact, [(values | chosen)[v] for v in node.inputs], storage)
            found = np.asarray(storage[0][0], dtype=np.float64)
            ends.append(found if is_sure else np.full_like(found, np.nan))
        result[m] = point(ends[0]) if n_ends == 1 else Interval(*ends)
    return result


def _in_double_precision(node: Any, entries: Sequence[Variable]) -> Any:
    """The operation on float64, in which coefficients are whatever the model computes in."""
    if all(v.dtype != "float32" for v in entries):
        return node
    op = MakeVector("float64") if isinstance(node.op, MakeVector) else node.op
    same = {v: v.type.clone(dtype="float64")() for v in entries if v.dtype == "float32"}
    return op.make_node(*(same.get(v, v) for v in node.inputs))


def _entries(node: Any) -> Sequence[Variable]:
    """Inputs whose entries are moved; the others are indices and shapes."""
    if isinstance(node.op, Join):
        return join_arguments(node)[1]
    if isinstance(node.op, MakeVector):
        return list(node.inputs)
    return list(node.inputs[: 2 if isinstance(node.op, _OF_TWO) else 1])


def _chosen(v: Variable, fixed: Mapping[Variable, NDArray]) -> Any:
    if isinstance(v, Constant):
        return v.data
    if v not in fixed:
        raise NotImplementedError
    return np.asarray(fixed[v])
