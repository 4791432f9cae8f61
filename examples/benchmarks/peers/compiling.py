"""How long PyTensor and numba compile."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

from examples.benchmarks.peers.run import now

try:
    from pytensor.compile.maker import FunctionMaker  # PyTensor 3
except ImportError:
    from pytensor.compile.function.types import FunctionMaker  # PyTensor 2


class CompileClock:
    """Time spent in compilation; what happens inside of another compilation counts once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._entered = 0.0

    def enter(self) -> None:
        """A compilation begins."""
        if self._depth == 0:
            self._entered = now()
        self._depth += 1

    def leave(self) -> None:
        """It ends."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += now() - self._entered


class _Listener(event.Listener):
    def __init__(self, clock: CompileClock) -> None:
        self.clock = clock

    def on_start(self, event: event.Event) -> None:
        self.clock.enter()

    def on_end(self, event: event.Event) -> None:
        self.clock.leave()


def _timed(function, clock: CompileClock):
    @functools.wraps(function)
    def timed(*args, **kwargs):
        clock.enter()
        try:
            return function(*args, **kwargs)
        finally:
            clock.leave()

    return timed


@contextmanager
def compile_clock() -> Iterator[CompileClock]:
    """Watch the rewriting and compiling of PyTensor functions, and numba's compiler."""
    clock = CompileClock()
    own = {name: getattr(FunctionMaker, name) for name in ("__init__", "create")}
    for name, method in own.items():
        setattr(FunctionMaker, name, _timed(method, clock))
    listener = _Listener(clock)
    event.register("numba:compile", listener)
    try:
        yield clock
    finally:
        event.unregister("numba:compile", listener)
        for name, method in own.items():
            setattr(FunctionMaker, name, method)
