"""Formulas of one row: scalars made of numbers, predictors and operations, and their code."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

from pymc_austerity.model.operations.table import OPERATIONS

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
    key = (name, tuple(map(id, arguments)), kind, repr(value), sources)
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
    kind: Kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
    number = float(value) if kind == "f" else value
    return _interned("constant", (), kind, number, Dependence.NOTHING)


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


def largest_parts(roots: Sequence[Scalar], is_part: Callable[[Scalar], bool]) -> list[Scalar]:
    """The largest scalars of a kind that roots are made of, which are not inside of others."""
    used = [argument for scalar in subterms(roots, is_part) for argument in scalar.arguments]
    return [scalar for scalar in dict.fromkeys([*used, *roots]) if is_part(scalar)]


def parts_from(roots: Sequence[Scalar], source: int) -> list[Scalar]:
    """The largest parts that depend on one source alone, and have to be computed."""
    parts = largest_parts(roots, lambda scalar: scalar.sources == source)
    return [scalar for scalar in parts if scalar.name != "given"]


class NoKernelError(Exception):
    """A likelihood has an operation without a rule; the message says which."""


_Parameters = ParamSpec("_Parameters")
_Written = TypeVar("_Written")


def or_reason(write: Callable[_Parameters, _Written]) -> Callable[_Parameters, _Written | str]:
    """Return the reason, as half a sentence, where code cannot be written."""

    @wraps(write)
    def written(*arguments: _Parameters.args, **settings: _Parameters.kwargs) -> _Written | str:
        try:
            return write(*arguments, **settings)
        except NoKernelError as refusal:
            return str(refusal)

    return written


@dataclass
class Names:
    """Names of scalars that have been computed, and a counter for new ones.

    Parameters
    ----------
    prefix : str
        What new names begin with.
    known : dict of Scalar to str
        Names or expressions of scalars.
    """

    prefix: str
    known: dict[Scalar, str] = field(default_factory=dict)
    counter: list[int] = field(default_factory=lambda: [0])

    def new(self) -> str:
        """A name that is not in use."""
        self.counter[0] += 1
        return f"{self.prefix}{self.counter[0]}"

    def inner(self) -> "Names":
        """Names within a branch, which are not valid outside."""
        return Names(self.prefix, dict(self.known), self.counter)

    def of(self, scalar: Scalar) -> str:
        """Expression for a scalar."""
        if scalar.is_constant:
            return literal(scalar)
        if scalar in self.known:
            return self.known[scalar]
        if scalar.name == "given":
            return str(scalar.value)
        raise KeyError(scalar)

    def has(self, scalar: Scalar) -> bool:
        """Whether nothing remains to be computed."""
        return scalar.name in ("constant", "given") or scalar in self.known


def literal(scalar: Scalar) -> str:
    """A constant in Python."""
    text = repr(scalar.value)
    special = {"inf": "math.inf", "-inf": "(-math.inf)", "nan": "math.nan"}
    return special.get(text, f"({text})" if text.startswith("-") else text)


def statements(roots: Sequence[Scalar], names: Names) -> list[str]:
    """Lines that compute scalars; their names are added to `names`.

    What only one branch of a switch needs, and is costly, is computed within that branch.
    """
    lines = []
    lazy = _worth_a_branch(roots, names)
    anyway = _unconditional(roots, names, lazy)  # before branches, which use it
    for scalar in [s for s in subterms(roots, names.has) if s in anyway]:
        name = names.new()
        if scalar in lazy:
            lines += _branches(scalar, name, names)
        else:
            written = [names.of(a) for a in scalar.arguments]
            lines.append(f"{name} = {OPERATIONS[scalar.name].written(written)}")
        names.known[scalar] = name
    return lines


def _branches(switch: Scalar, name: str, names: Names) -> list[str]:
    condition, yes, no = switch.arguments
    lines = []
    for head, branch in ((f"if {names.of(condition)}:", yes), ("else:", no)):
        inside = names.inner()
        body = [*statements([branch], inside), f"{name} = {inside.of(branch)}"]
        lines += [head, *(f"    {line}" for line in body)]
    return lines


def _worth_a_branch(roots: Sequence[Scalar], names: Names) -> set[Scalar]:
    """Switches with costly scalars that only one of their branches needs.

    Beside a number, as in checks of bounds, a branch is nearly always taken; each of many outputs
    would repeat what the same check guards.
    """
    scalars = subterms(roots, names.has)
    switches = [
        s for s in scalars if s.name == "Switch" and not any(a.is_constant for a in s.arguments[1:])
    ]
    lazy = {s for s in switches if _has_costly(s, set(), names)}
    anyway = _unconditional(roots, names, lazy)
    return {s for s in lazy if _has_costly(s, anyway, names)}


def _has_costly(switch: Scalar, anyway: set[Scalar], names: Names) -> bool:
    branches = subterms(switch.arguments[1:], names.has)
    return any(OPERATIONS[s.name].is_costly for s in branches if s not in anyway)


def _unconditional(roots: Iterable[Scalar], names: Names, lazy: set[Scalar]) -> set[Scalar]:
    """Scalars that roots need whichever branches are taken."""
    found: set[Scalar] = set()
    stack = list(roots)
    while stack:
        scalar = stack.pop()
        if scalar in found or names.has(scalar):
            continue
        found.add(scalar)
        if scalar in lazy:
            condition, yes, no = scalar.arguments
            both = _unconditional([yes], names, lazy) & _unconditional([no], names, lazy)
            stack.extend([condition, *both])
        else:
            stack.extend(scalar.arguments)
    return found
