"""Formulas as statements of Python."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pymc_austerity.model.kernel.scalar import Scalar, subterms
from pymc_austerity.model.operations.table import OPERATIONS

__all__ = ["Names", "literal", "statements"]


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
    for scalar in _in_order(roots, names, lazy):
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
    """Switches with costly scalars that only one of their branches needs."""
    switches = [s for s in subterms(roots, names.has) if s.name == "Switch"]
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


def _in_order(roots: Sequence[Scalar], names: Names, lazy: set[Scalar]) -> list[Scalar]:
    """What is computed whatever the conditions are, arguments first.

    Branches use what is computed anyway, so it comes before them.
    """
    anyway = _unconditional(roots, names, lazy)
    return [s for s in subterms(roots, names.has) if s in anyway]
