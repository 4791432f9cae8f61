"""Compilation of graphs into functions that any thread may call."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from pymc_austerity._pymc import Elemwise, TriGamma, Variable, clone_replace, toposort, underivable
from pymc_austerity.errors import SettingError
from pymc_austerity.time_limit import end_if_late

__all__ = ["AnyThread", "OneAtATime", "compiled", "expand_trigamma", "trigamma"]


def compiled(
    model: pm.Model, inputs: Sequence, outputs: Any, compile_kwargs: dict[str, Any] | None
) -> Callable[..., Any]:
    """Compile one graph, or a list of them.

    Parameters
    ----------
    model : pymc.Model
        Whose ``check_bounds`` is honored.
    inputs : sequence of variables
        Arguments of the function; it trusts them to have the right types, and may ignore some.
    outputs : variable or list of variables
        What it returns.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``. The mode is NUMBA unless it says otherwise.

    Raises
    ------
    SettingError
        PyTensor does not compile with these arguments.
    """
    end_if_late()
    many = isinstance(outputs, list)
    expanded = expand_trigamma(outputs if many else [outputs])
    kwargs = {"mode": "NUMBA", "on_unused_input": "ignore"} | (compile_kwargs or {})
    with model:
        try:
            function = pm.compile(list(inputs), expanded if many else expanded[0], **kwargs)
        except Exception as error:
            if not compile_kwargs or isinstance(error, underivable):
                raise
            reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            raise SettingError(
                f"compile_kwargs={compile_kwargs!r} is rejected by PyTensor ({reason}): leave out "
                "what it does not take, or install what it needs."
            ) from error
    function.trust_input = True
    return function


class AnyThread:
    """A function that runs operation by operation, with a copy for each thread that calls it now.

    Parameters
    ----------
    function : pytensor Function
        Of a linker for which a copy takes no compilation.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._begin()

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        try:
            function = self._free.pop()
        except IndexError:
            function = self._copy()
        try:
            return function(*arguments)
        finally:
            self._free.append(function)

    def _copy(self) -> Any:
        with self._lock:
            copy = self._function.copy()
            copy.trust_input = self._function.trust_input
            return copy

    def _begin(self) -> None:
        self._free, self._lock = [self._function], threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._function = state["_function"]
        self._begin()


class OneAtATime:
    """A compiled function that one thread calls at a time: it holds the interpreter's lock.

    Parameters
    ----------
    function : pytensor Function
    """

    def __init__(self, function: Any) -> None:
        self._function, self._lock = function, threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns, when no other thread waits for it."""
        with self._lock:
            return self._function(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_function": self._function}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_function"])  # type: ignore[misc]


_SHIFT = 10
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


def trigamma(x: Any) -> Any:
    r"""Second derivative of the log of the gamma function, for positive arguments.

    .. math::
        \psi'(x) = \sum_{k=0}^{9} \frac{1}{(x + k)^2}
        + \frac{1}{z} + \frac{1}{2 z^2} + \sum_{j=1}^{5} \frac{B_{2j}}{z^{2j+1}}, \quad z = x + 10

    The relative error is below 1e-13. Numba would call SciPy through Python for every element.

    Parameters
    ----------
    x : tensor variable
        Positive; elsewhere the result is NaN.

    References
    ----------
    Abramowitz, M. and Stegun, I. A. (1964). Handbook of Mathematical Functions, 6.4.6 and 6.4.12.

    Examples
    --------
    >>> import numpy as np
    >>> value = trigamma(pt.constant(1.0, dtype="float64")).eval()
    >>> bool(np.isclose(value, np.pi**2 / 6, rtol=1e-12))
    True
    """
    z = x + _SHIFT
    tail = 1 / z + 0.5 / z**2
    for j, bernoulli in enumerate(_BERNOULLI, start=1):
        tail = tail + bernoulli / z ** (2 * j + 1)
    terms = [1 / (x + k) ** 2 for k in range(_SHIFT)]
    return pt.switch(x > 0, pt.add(*terms, tail), float("nan"))


def expand_trigamma(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace PyTensor's trigamma, which second derivatives of gamma functions bring in."""
    replacements = {
        node.outputs[0]: trigamma(node.inputs[0]).astype(node.outputs[0].dtype)
        for node in toposort(list(outputs))
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, TriGamma)
    }
    if not replacements:
        return list(outputs)
    return list(clone_replace(list(outputs), replacements, rebuild_strict=False))
