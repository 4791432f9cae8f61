"""The time that a set-up may take."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class SetupTooLongError(RuntimeError):
    """Set-up is not worth the time that it takes; the message is a clause."""


_ends: ContextVar[float] = ContextVar("_ends", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give up a set-up at the first compilation or block of rows that begins after this time.

    Parameters
    ----------
    seconds : float
        Processor time from now, which does not depend on what else the machine does.
    """
    token = _ends.set(time.process_time() + seconds)
    try:
        yield
    finally:
        _ends.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Add the time of what is done to the time that a set-up may take.

    For functions that serve all models, and are compiled by the first set-up on a machine.
    """
    started = time.process_time()
    try:
        yield
    finally:
        _ends.set(_ends.get() + time.process_time() - started)


def end_if_late() -> None:
    """End a set-up that takes too long; called wherever much work begins.

    Raises
    ------
    SetupTooLongError
        The time that `within` allows is over.
    """
    if time.process_time() > _ends.get():
        raise SetupTooLongError("set-up took longer than it can save")
