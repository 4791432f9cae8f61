"""Known numbers by position, such as a covariate of each group, read by the group of the row."""

import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from pymc_austerity.model.kernel.scalar import Kind, Scalar, Source, given, operation

__all__ = ["definitions", "is_table", "looked_up"]

_FEWEST = 17
"""Fewer numbers are compared with the position one by one."""


class _Table(str):
    """Name of a table, made of its numbers, with the code that defines it."""

    __slots__ = ("definition",)
    definition: str


def is_table(numbers: Sequence[Scalar], position: Scalar) -> bool:
    """Whether rows should read an array of numbers: long, known, by data of the row."""
    return (
        len(numbers) >= _FEWEST
        and position.sources == Source.DATA
        and all(n.is_constant and math.isfinite(n.value) for n in numbers)
    )


def looked_up(numbers: Sequence[Scalar], position: Scalar, kind: Kind) -> Scalar:
    r"""The number at a position, from the end if it is negative.

    Examples
    --------
    >>> from pymc_austerity.model.kernel.scalar import constant
    >>> group = given("leaf_0[i]", "i", Source.DATA)
    >>> found = looked_up([constant(float(n)) for n in range(20)], group, "f")
    >>> found.name, definitions([found.arguments[0]])[-13:]
    ('Lookup', '18.0, 19.0])\n')
    """
    values = [{"f": float, "i": int, "b": bool}[kind](n.value) for n in numbers]
    table = _Table(f"table_{blake2b(repr(values).encode(), digest_size=8).hexdigest()}")
    table.definition = f"{table} = np.array({values})\n"
    return operation("Lookup", [given(table, kind, Source.NOTHING), position], kind)


def definitions(scalars: Iterable[Scalar]) -> str:
    """Lines of a module that define the tables among some scalars."""
    tables = dict.fromkeys(s.value for s in scalars if isinstance(s.value, _Table))
    return "".join(table.definition for table in tables)
