"""Formulas of one row: scalars made of constants, data, predictors and operations."""

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "LENGTH",
    "ROW",
    "Dependence",
    "Kind",
    "NoKernelError",
    "Scalar",
    "constant",
    "given",
    "operation",
    "subterms",
]

Kind = Literal["b", "i", "f"]
"""Boolean, integer or real; real numbers are always of double precision."""


class Dependence:
    """What a scalar depends on, as flags of an integer."""

    NOTHING = 0
    DATA = 1
    """Data of the row."""
    POINT = 2
    """Predictors that are the same for all rows."""
    PREDICTOR = 4
    """Predictors of the row."""


@dataclass(frozen=True, eq=False)
class Scalar:
    """A number that a formula computes.

    Equal scalars are one object, so a graph of scalars has no common subexpressions.

    Attributes
    ----------
    name : str
        Of the operation; "constant" and "given" have no arguments.
    arguments : tuple of Scalar
        What the operation is applied to.
    kind : {"b", "i", "f"}
        Boolean, integer or real.
    value : object
        Number of a constant, code of a given scalar.
    sources : int
        Flags of `Dependence`.
    """

    name: str
    arguments: tuple["Scalar", ...]
    kind: Kind
    value: Any
    sources: int

    @property
    def is_constant(self) -> bool:
        """Whether it is a number that is known now."""
        return self.name == "constant"


_known: "weakref.WeakValueDictionary[tuple, Scalar]" = weakref.WeakValueDictionary()


def _interned(
    name: str, arguments: tuple[Scalar, ...], kind: Kind, value: Any, sources: int
) -> Scalar:
    key = (name, tuple(map(id, arguments)), kind, repr(value))
    found = _known.get(key)
    if found is None:
        found = _known[key] = Scalar(name, arguments, kind, value, sources)
    return found


def constant(value: Any) -> Scalar:
    """A number.

    Examples
    --------
    >>> constant(1.5) is constant(1.5)
    True
    """
    if isinstance(value, bool):
        return _interned("constant", (), "b", value, Dependence.NOTHING)
    if isinstance(value, int):
        return _interned("constant", (), "i", value, Dependence.NOTHING)
    return _interned("constant", (), "f", float(value), Dependence.NOTHING)


def given(code: str, kind: Kind, source: int) -> Scalar:
    """A number that the surrounding code computes.

    Parameters
    ----------
    code : str
        Expression that names it there.
    kind : {"b", "i", "f"}
    source : int
        A flag of `Dependence`.
    """
    return _interned("given", (), kind, code, source)


def operation(name: str, arguments: Iterable[Scalar], kind: Kind) -> Scalar:
    """An operation on scalars; see `pymc_austerity.model.operations.table` for the names."""
    arguments = tuple(arguments)
    sources = Dependence.NOTHING
    for argument in arguments:
        sources |= argument.sources
    return _interned(name, arguments, kind, None, sources)


LENGTH = given("n_rows", "i", Dependence.POINT)
"""Number of rows of a block; shapes have it, formulas do not."""

ROW = given("i", "i", Dependence.DATA)
"""Position of the row in the block; indices have it, formulas do not."""


def subterms(
    roots: Iterable[Scalar], is_known: Callable[[Scalar], bool] = lambda _: False
) -> list[Scalar]:
    """All scalars that roots are made of, arguments first, each once, without known ones."""
    seen: dict[Scalar, None] = {}
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        scalar, is_ready = stack.pop()
        if scalar in seen or is_known(scalar):
            continue
        if is_ready:
            seen[scalar] = None
        else:
            stack.append((scalar, True))
            stack.extend((a, False) for a in reversed(scalar.arguments) if a not in seen)
    return list(seen)


class NoKernelError(Exception):
    """A likelihood has an operation without a rule; the message says which."""

    @property
    def reason(self) -> str:
        """The message."""
        return str(self)
