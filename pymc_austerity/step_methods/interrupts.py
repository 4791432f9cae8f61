"""Ctrl-C takes effect between two steps: inside compiled code it would cost all the draws.

An exception that a signal handler raises there appears as ``SystemError``, for which PyMC's loops
are not prepared. Therefore the first interrupt of a chain is noted, the current draw is recorded,
and the next step does not start.
"""

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar, cast

from pymc_austerity._pymc import RECORDING, SAMPLING_LOOP, WORKER_LOOP

_Handler = Callable[[int, FrameType | None], Any]
_MOMENT = 0.001
"""Seconds; storing a draw takes a few microseconds."""

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_LOADING = frozenset({("numba.core.base", "refresh"), ("numba.core.typing.context", "refresh")})
"""Where numba takes in its own functions: what it has not read to the end is never read again."""
_SET_UP = (__name__, "decorated")

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Interrupts:
    """The interrupts of this process: a signal has one handler, so there is one instance.

    Attributes
    ----------
    seen : bool
        Whether this chain was interrupted before.
    pending : bool
        Whether to prevent the next step.
    previous : callable
        The previous handler.
    """

    def __init__(self) -> None:
        self.seen = self.pending = False
        self.previous: _Handler = signal.default_int_handler

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Note the first interrupt of a chain; anything else is passed to the previous handler.

        Workers of a parallel run are interrupted together with the process that reads their draws.
        That process stops the workers, as soon as it is not storing a draw.
        """
        in_worker = _runs(WORKER_LOOP, frame)
        if not self.seen and (in_worker or _runs(SAMPLING_LOOP, frame)):
            self.seen, self.pending = True, not in_worker
            return
        if _runs(RECORDING, frame):
            _interrupt_again()
            return
        restore_interrupts()
        self.previous(number, frame)


_interrupts = _Interrupts()


def defer_interrupts() -> None:
    """Let the first interrupt wait for a step, when a chain or the collection of draws starts.

    This is possible only in the main thread, and only if an interrupt calls a Python function.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _interrupts.seen = _interrupts.pending = False
    current = signal.getsignal(signal.SIGINT)
    if callable(current) and current != _interrupts.handle:
        _interrupts.previous = current
        signal.signal(signal.SIGINT, _interrupts.handle)


def restore_interrupts() -> None:
    """Restore the previous handling of interrupts when sampling ends."""
    if threading.current_thread() is not threading.main_thread():
        return
    _interrupts.seen = _interrupts.pending = False
    if signal.getsignal(signal.SIGINT) == _interrupts.handle:
        signal.signal(signal.SIGINT, _interrupts.previous)


def stop_if_interrupted() -> None:
    """Raise the interrupt that was deferred, if there was one; called before every step.

    Raises
    ------
    KeyboardInterrupt
        The exception that PyMC expects from a chain that must end.
    """
    if _interrupts.pending:
        _interrupts.pending = False
        raise KeyboardInterrupt


def clean_interrupt(function: _Function) -> _Function:
    """Decorate a function that runs compiled code, so that interrupts leave it unchanged.

    Compiled code turns an interrupt into a ``SystemError``. Finalizers and callbacks of C
    libraries print it and continue. An import that is interrupted, or numba while it loads its own
    functions, would be incomplete for the rest of the process, so an interrupt waits for its end.
    """

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with _noticed_interrupts() as noticed:
            try:
                result = function(*args, **kwargs)
            except Exception:
                if noticed:
                    raise KeyboardInterrupt from None
                raise
        if noticed:
            raise KeyboardInterrupt
        return result

    return cast(_Function, decorated)


@contextmanager
def _noticed_interrupts() -> Iterator[list[BaseException]]:
    """Collect the interrupts that are raised in this context, whatever happens to them."""
    noticed: list[BaseException] = []
    previous, of_chains = signal.getsignal(signal.SIGINT), _interrupts.previous

    def handle(number: int, frame: FrameType | None) -> None:
        if _loads(frame):
            _interrupt_again()
            return
        try:
            cast(_Handler, previous)(number, frame)
        except KeyboardInterrupt as interrupt:
            noticed.append(interrupt)
            raise

    if not callable(previous) or threading.current_thread() is not threading.main_thread():
        yield noticed
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield noticed
    finally:  # short chains in this context leave no trace of this handler
        signal.signal(signal.SIGINT, previous)
        _interrupts.previous = of_chains


def _interrupt_again() -> None:
    """Send the same signal again after a moment."""
    main = cast(int, threading.main_thread().ident)
    threading.Timer(_MOMENT, signal.pthread_kill, (main, signal.SIGINT)).start()


def _loads(frame: FrameType | None) -> bool:
    """Whether set-up loads a module or numba's functions; it may itself run during an import."""
    while frame is not None:
        running = _named(frame)
        if running == _SET_UP:
            return False
        if frame.f_code.co_filename == _IMPORT_SYSTEM or running in _LOADING:
            return True
        frame = frame.f_back
    return False


def _runs(functions: frozenset[tuple[str, str]], frame: FrameType | None) -> bool:
    """Whether one of some functions, each a module and a name, is being executed."""
    while frame is not None:
        if _named(frame) in functions:
            return True
        frame = frame.f_back
    return False


def _named(frame: FrameType) -> tuple[str, str]:
    """Module and name of the function of a frame."""
    return frame.f_globals.get("__name__", ""), frame.f_code.co_name
