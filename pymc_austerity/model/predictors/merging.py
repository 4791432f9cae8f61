"""Terms put together, and linear functions told apart from multiples of the same one."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import Constant, Subtensor, Variable, indices_of
from pymc_austerity.model.predictors.columns import Column
from pymc_austerity.model.predictors.structure import Dense, Gathered, Single, Term

__all__ = ["Identity", "Multiple", "as_multiple", "merged"]

_SMALL = 1_000


class Identity:
    """Numbers for graphs: the same one for graphs that compute the same in the same way."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[Variable, int] = {}

    def of(self, variable: Variable | None) -> int:
        """Number of a graph; -1 for None."""
        if variable is None:
            return -1
        if variable not in self._known:
            key = self._key(variable)
            self._known[variable] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[variable]

    def _key(self, variable: Variable) -> Hashable:
        node = variable.owner
        if node is not None:
            inputs = tuple(self.of(i) for i in node.inputs)
            return (node.op, node.outputs.index(variable), inputs)
        if isinstance(variable, Constant) and np.size(variable.data) <= _SMALL:
            data = variable.data
            if isinstance(data, np.ndarray | np.generic | int | float):
                return (variable.type, np.asarray(data).tobytes())
        return variable


@dataclass(frozen=True, eq=False)
class Multiple:
    """A linear function as a multiple of a predictor, ``scale * eta + offset + constant``.

    Attributes
    ----------
    key : hashable
        Equal for multiples of the same predictor.
    terms : tuple of terms
        Of the predictor.
    scale : float
    offset : variable, shape (m,), or None
    constant : float
    """

    key: Hashable
    terms: tuple[Term, ...]
    scale: float
    offset: Variable | None
    constant: float


def as_multiple(column: Column, identity: Identity) -> Multiple:
    """Reduce a linear function to the predictor that it is a multiple of."""
    terms = merged(column.terms, identity)
    if not terms:
        return Multiple((), (), 1.0, column.offset, column.constant)
    # data are best left as they are, so that a design matrix has no multiple
    leading = min(terms, key=lambda t: (Dense, Gathered, Single).index(type(t)))
    scale = leading.scale
    terms = tuple(replace(t, scale=t.scale / scale) for t in terms)
    key = tuple(sorted((*_key(t, identity), t.scale) for t in terms))
    return Multiple(key, terms, scale, column.offset, column.constant)


def merged(terms: Sequence[Term], identity: Identity) -> tuple[Term, ...]:
    """Add up columns that read the same entries by the same data; data become a matrix."""
    found: dict[Hashable, Term] = {}
    for term in terms:
        key = _key(term, identity)
        found[key] = replace(term, scale=term.scale + found[key].scale) if key in found else term
    kept = [term for term in found.values() if term.scale != 0.0]
    columns = [t for t in kept if isinstance(t, Single) and t.coefficient is not None]
    if len(columns) < 2 or len({t.entry for t in columns}) < len(columns):
        return tuple(kept)
    return (*[t for t in kept if t not in columns], _as_matrix(columns, identity))


def _key(term: Term, identity: Identity) -> tuple[Any, ...]:
    if isinstance(term, Dense):
        return ("dense", term.entries.tobytes(), identity.of(term.data), -1)
    entries = term.entries if isinstance(term, Gathered) else np.array([term.entry])
    index = identity.of(term.index) if isinstance(term, Gathered) else -1
    kind = "gathered" if isinstance(term, Gathered) else "single"
    return (kind, entries.tobytes(), index, identity.of(term.coefficient))


def _as_matrix(columns: Sequence[Single], identity: Identity) -> Dense:
    columns = sorted(columns, key=lambda t: t.entry)
    entries = np.array([t.entry for t in columns], dtype=np.int64)
    scales = np.array([t.scale for t in columns])
    data = _stacked([t.coefficient for t in columns if t.coefficient is not None], identity)
    if np.ptp(scales) == 0.0:
        return Dense(entries, data, float(scales[0]))
    return Dense(entries, data * pt.constant(scales))


def _stacked(vectors: Sequence[Variable], identity: Identity) -> Variable:
    """Vectors side by side; where they are columns of one matrix, of that matrix."""
    places = [_column_of(v) for v in vectors]
    matrices = {identity.of(place[0]) for place in places if place is not None}
    if None in places or len(matrices) > 1:
        return pt.stack(list(vectors), axis=1)
    columns = [place[1] for place in places if place is not None]
    (matrix,) = (place[0] for place in places[:1] if place is not None)
    if matrix.type.shape[1] == len(columns) and columns == list(range(len(columns))):
        return matrix
    return matrix[:, columns]


def _column_of(vector: Variable) -> tuple[Variable, int] | None:
    """The matrix, and the number of the column in it, that a vector is."""
    node = vector.owner
    if node is None or not isinstance(node.op, Subtensor) or node.inputs[0].type.ndim != 2:
        return None
    rows, column = (*indices_of(node), None)[:2]
    while getattr(column, "owner", None) is not None:
        column = column.owner.inputs[0]
    number = getattr(column, "data", column)
    if (
        not isinstance(rows, slice)
        or rows != slice(None)
        or not isinstance(number, int | np.integer | np.ndarray)
    ):
        return None
    return node.inputs[0], int(number)
