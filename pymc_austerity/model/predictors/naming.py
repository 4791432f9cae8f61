"""Names of linear predictors, as a user would write them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Constant, Neg, Variable, ancestors
from pymc_austerity.model.predictors.structure import Dense, Gathered, Predictor, Single, Term

__all__ = ["Layout", "named"]


@dataclass(frozen=True)
class Layout:
    """Where each variable is in the raveled vector.

    Attributes
    ----------
    names : tuple of str
    starts : tuple of int
    shapes : tuple of tuple of int
    size : int
        Length of the vector.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    size: int

    @classmethod
    def of(cls, variables: Sequence[Variable], point: Mapping[str, NDArray]) -> "Layout":
        """Layout of variables joined in this order."""
        shapes = tuple(np.shape(point[v.name]) for v in variables)
        ends = np.cumsum([0, *(int(np.prod(s, dtype=int)) for s in shapes)])
        starts = tuple(int(end) for end in ends[:-1])
        return cls(tuple(str(v.name) for v in variables), starts, shapes, int(ends[-1]))

    def variables(self, entries: NDArray[np.int64]) -> str:
        """Names of the variables that entries belong to."""
        numbers = np.unique(np.searchsorted(self.starts, entries, side="right") - 1)
        names = [self.names[number] for number in numbers]
        return names[0] if len(names) == 1 else f"[{', '.join(names)}]"

    def entry(self, entry: int) -> str:
        """Name of one entry."""
        number = int(np.searchsorted(self.starts, entry, side="right")) - 1
        shape = self.shapes[number]
        if not shape:
            return self.names[number]
        where = np.unravel_index(entry - self.starts[number], shape)
        return f"{self.names[number]}[{', '.join(str(int(k)) for k in where)}]"


def named(predictor: Predictor, layout: Layout) -> Predictor:
    """The same predictor with a name made of its terms."""
    name = ""
    for term in predictor.terms:
        text, sign = _text(term, layout), "-" if term.scale < 0 else "+"
        name += f" {sign} {text}" if name else text if sign == "+" else f"-{text}"
    if predictor.offset is not None:
        node = predictor.offset.owner
        is_negative = node is not None and isinstance(getattr(node.op, "scalar_op", None), Neg)
        name += f" {'-' if is_negative else '+'} {_data(predictor.offset)}"
    return replace(predictor, name=name)


def _text(term: Term, layout: Layout) -> str:
    size = abs(term.scale)
    factor = "" if size == 1.0 else f"{size:.4g} * "
    if isinstance(term, Dense):
        return f"{factor}{_data(term.data)} @ {layout.variables(term.entries)}"
    if term.coefficient is not None:
        factor += f"{_data(term.coefficient)} * "
    if isinstance(term, Gathered):
        return f"{factor}{layout.variables(term.entries)}[{_data(term.index)}]"
    assert isinstance(term, Single)
    return f"{factor}{layout.entry(term.entry)}"


def _data(graph: Variable) -> str:
    """Name of the data that a graph is computed from."""
    inputs = [v for v in ancestors([graph]) if v.owner is None and not isinstance(v, Constant)]
    names = list(dict.fromkeys(str(v.name) for v in inputs if v.name))
    return names[0] if len(names) == 1 else f"({', '.join(names)})" if names else "data"
