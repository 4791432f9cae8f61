"""PyTensor's functions, which keep arguments and results in one place, for several threads."""

import threading
from typing import Any

__all__ = ["AnyThread", "OneAtATime"]


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
