"""Modules of generated code: functions of numbers, addresses, and files where numba keeps both."""

import contextlib
import hashlib
import importlib.util
import math
import os
import sys
import tempfile
from collections.abc import Callable
from ctypes import addressof, c_char
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numba
import pytensor
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from pymc_austerity.time_limit import end_if_late

_LOG_2 = math.log(2.0)
_SQRT_PI = math.sqrt(math.pi)
_FAR = 10.0
_TERMS = 14
_OF_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_OF_TRIGAMMA = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
"""Coefficients of asymptotic series (Abramowitz and Stegun, 6.3.18 and 6.4.12), the last first."""

_FOLDER = "pymc_austerity_kernels"


@njit(error_model="numpy")
def one_of_two(condition: bool, yes: float, no: float) -> float:
    """One of two numbers.

    A conditional expression in its place gives its function two more blocks of code, and the time
    to compile that grows with their square.
    """
    return yes if condition else no


@njit(error_model="numpy")
def log_one_minus_exp(x: float) -> float:
    """Log of 1 - exp(x) for x <= 0, after Maechler (2012)."""
    if x > -_LOG_2:
        return math.log(-math.expm1(x))
    return math.log1p(-math.exp(x))


@njit(error_model="numpy")
def scaled_erfc(x: float) -> float:
    """exp(x^2) erfc(x); by its asymptotic series (Abramowitz and Stegun, 7.1.23) beyond 10."""
    if x < _FAR:
        return math.exp(x * x) * math.erfc(x)
    half = 0.5 / (x * x)
    total = 1.0
    for k in range(_TERMS, 0, -1):
        total = 1.0 - (2 * k - 1) * half * total
    return total / (x * _SQRT_PI)


@njit(error_model="numpy")
def digamma(x: float) -> float:
    """First derivative of log Gamma for x > 0, else NaN: its asymptotic series beyond 10."""
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < _FAR:
        total -= 1.0 / x
        x += 1.0
    square, series = 1.0 / (x * x), 0.0
    for coefficient in _OF_DIGAMMA:
        series = square * (coefficient + series)
    return total + math.log(x) - 0.5 / x - series


@njit(error_model="numpy")
def trigamma(x: float) -> float:
    """Second derivative of log Gamma for x > 0, else NaN: its asymptotic series beyond 10."""
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < _FAR:
        total += 1.0 / (x * x)
        x += 1.0
    square, series = 1.0 / (x * x), 0.0
    for coefficient in _OF_TRIGAMMA:
        series = square * (coefficient + series)
    return total + (1.0 + series) / x + 0.5 * square


FUNCTIONS = {f.__name__: f for f in (one_of_two, digamma, log_one_minus_exp, scaled_erfc, trigamma)}
"""What generated code may call, where Python's `math` has nothing.

The special functions are stable over the whole range of double precision, and pass NaN on.
"""


@intrinsic
def pointer(typing_context, address):  # type: ignore[no-untyped-def]
    """Pointer to an address, for ``numba.carray``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), codegen


def compiled_function(function: Callable[..., Any], n_arguments: int, result: Any) -> Any:
    """Compile a function of integers, most of them addresses, with C's calling convention.

    It cannot raise errors: what divides by zero is infinite or NaN.

    Parameters
    ----------
    function : callable
        From a module of `pymc_austerity.model.kernel.generated`.
    n_arguments : int
    result : numba type

    Returns
    -------
    numba.core.ccallback.CFunc
        Its ``address`` is valid as long as it lives.
    """
    end_if_late()
    keep = not function.__code__.co_filename.startswith("<")
    signature = result(*[types.intp] * n_arguments)
    return numba.cfunc(signature, cache=keep, error_model="numpy")(function)


def _address_of(array: NDArray) -> int:
    """What ``array.ctypes.data`` is, in a third of its time where the array can be written."""
    if array.size and array.flags.writeable:
        return addressof(c_char.from_buffer(array.data))
    return array.ctypes.data


@dataclass(frozen=True, eq=False)
class Generated:
    """Functions of a generated module, compiled when they are called first.

    Attributes
    ----------
    source : str
        Python code.
    by_address : tuple of (str, int, numba type)
        Of the function that is called by its address: name, number of arguments, and what it
        returns.
    by_arrays : str
        Name of the function that is called with arrays.
    """

    by_address: ClassVar[tuple[str, int, Any]]
    by_arrays: ClassVar[str]
    source: str

    @property
    def address(self) -> int:
        """Of the function that is called so."""
        return int(self._by_address.address)

    @cached_property
    def _by_address(self) -> Any:
        name, n_arguments, result = self.by_address
        function = getattr(module_of(self.source), name)
        return compiled_function(function, n_arguments, result)

    @cached_property
    def _function(self) -> Any:
        return getattr(module_of(self.source), self.by_arrays)

    def on_arrays(self, *arrays: NDArray) -> Any:
        """Result of the function at `address`, from the addresses of arrays."""
        return self._by_address.ctypes(*map(_address_of, arrays))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the compiled functions."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def module_of(source: str) -> ModuleType:
    """Import generated source, from a file where numba can keep what it compiles.

    Parameters
    ----------
    source : str
        Python code; ``CACHE`` in it is replaced by whether compiled code is kept.

    Notes
    -----
    The file's name is a hash of the source and of the versions, so a file never changes once it
    is written: processes may write it at the same time. Where the folder cannot be written, the
    code lives in memory and is compiled again by every process.
    """
    name = f"pymc_austerity_kernel_{_hash(source)}"
    if name in sys.modules:
        return sys.modules[name]
    path = _written(source.replace("CACHE", "True"), f"{name}.py")
    if path is None:
        module = ModuleType(name)
        exec(compile(source.replace("CACHE", "False"), f"<{name}>", "exec"), module.__dict__)
    else:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.modules[name] = module  # once it is complete: an interrupt may come before
    return module


def _hash(source: str) -> str:
    versions = [numba.__version__, sys.version, Path(__file__).read_text()]
    return hashlib.sha256("\n".join([source, *versions]).encode()).hexdigest()[:24]


def _written(source: str, name: str) -> Path | None:
    """Path of the file, or None where it cannot be written."""
    path = Path(pytensor.config.compiledir) / _FOLDER / name
    if path.is_file() and os.access(path.parent, os.W_OK):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".draft")
    except OSError:
        return None
    try:
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.utime(draft, (0, 0))  # numba compares times: a twin of another process is the same
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        return None
    return path
