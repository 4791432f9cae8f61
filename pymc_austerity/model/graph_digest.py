"""Digests of graphs, equal in any process for equal graphs, to identify stored results."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_austerity._pymc import (
    Constant,
    HasInnerGraph,
    Op,
    RandomGeneratorType,
    SharedVariable,
    Variable,
    toposort,
)

__all__ = ["NoDigestError", "graph_digest"]

_KNOWN_PACKAGES = "builtins", "numpy", "pytensor", "pymc", "pymc_austerity", "pymc_extras"
"""What is defined in a package is told by its name and by the package's version."""


class NoDigestError(ValueError):
    """Something in a graph cannot be compared with that of another process; its name."""


def graph_digest(outputs: Sequence[Variable]) -> str:
    """Digest of graphs: operations, types, names of inputs, and all constants.

    Parameters
    ----------
    outputs : sequence of variables

    Returns
    -------
    str
        64 hexadecimal digits, the same in every process with the same versions of packages.

    Raises
    ------
    NoDigestError
        Names an operation or a function that no known package defines.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> one, other = (2.0 * pt.exp(pt.vector("x")) for _ in range(2))
    >>> graph_digest([one]) == graph_digest([other])
    True
    >>> graph_digest([one]) == graph_digest([2.5 * pt.exp(pt.vector("x"))])
    False
    """
    return hashlib.sha256("\n".join(_lines(outputs, ())).encode()).hexdigest()


def _lines(outputs: Sequence[Variable], inputs: Sequence[Variable]) -> list[str]:
    """A line for each root and each operation, in which variables are numbers."""
    numbers: dict[Variable, int] = {}
    lines: list[str] = []

    def number(variable: Variable) -> int:
        if variable not in numbers:
            numbers[variable] = len(numbers)
            lines.append(f"{numbers[variable]} {_root(variable)}")
        return numbers[variable]

    for variable in inputs:
        number(variable)
    for node in toposort(list(outputs)):
        given = [number(variable) for variable in node.inputs]
        made = [numbers.setdefault(variable, len(numbers)) for variable in node.outputs]
        types = [_text_of_object(variable.type) for variable in node.outputs]
        lines.append(f"{made} {_operation(node.op)} {given} {types}")
    lines.append(str([number(variable) for variable in outputs]))
    return lines


def _root(variable: Variable) -> str:
    about = f"{type(variable).__qualname__} {_text_of_object(variable.type)}"
    if isinstance(variable, Constant):
        return f"{about} {_text(variable.data)}"
    if isinstance(variable, SharedVariable) and not isinstance(variable.type, RandomGeneratorType):
        return f"{about} {variable.name} {_text(variable.get_value(borrow=True))}"
    return f"{about} {variable.name}"


def _operation(op: Op) -> str:
    name = f"{type(op).__module__}.{type(op).__qualname__}"
    _refuse_unknown(op)
    if isinstance(op, HasInnerGraph):
        info = repr(getattr(op, "info", None))
        return f"{name} {info} {_lines(op.inner_outputs, op.inner_inputs)}"
    if hasattr(op, "_props"):
        return f"{name} {_text(op._props())}"
    return f"{name} {_text(vars(op))}"


def _refuse_unknown(thing: Any) -> None:
    """What is defined elsewhere may have changed under the same name."""
    kind = type(thing)
    if kind.__module__.partition(".")[0] not in _KNOWN_PACKAGES:
        raise NoDigestError(f"{kind.__module__}.{kind.__qualname__}")


def _text(value: Any) -> str:
    """A value in words, without the addresses of objects."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | slice):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic | np.dtype):
        return _text_of_numbers(value)
    if isinstance(value, Mapping):
        return f"{{{sorted((_text(k), _text(v)) for k, v in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, set | frozenset):
        return f"{{{sorted(map(_text, value))}}}"
    if isinstance(value, Op):
        return _operation(value)
    if isinstance(value, Variable):
        return str(_lines([value], ()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _text({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    return _text_of_object(value)


def _text_of_numbers(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.str
    array = np.ascontiguousarray(value)
    return f"{np.shape(value)} {array.dtype.str} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _text_of_object(value: Any) -> str:
    if hasattr(value, "__qualname__"):  # a function or a class
        if value.__module__.partition(".")[0] not in _KNOWN_PACKAGES or "<" in value.__qualname__:
            raise NoDigestError(f"{value.__module__}.{value.__qualname__}")
        return f"{value.__module__}.{value.__qualname__}"
    _refuse_unknown(value)
    about = value._props() if hasattr(value, "_props") else vars(value)
    return f"{type(value).__qualname__} {_text(about)}"
