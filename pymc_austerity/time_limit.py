"""The time that a set-up may take."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class SetupTooLongError(RuntimeError):
    """Set-up is not worth the time that it takes; the message is a clause."""


_ends: ContextVar[float] = ContextVar("_ends", default=math.inf)
_uncounted: ContextVar[float] = ContextVar("_uncounted", default=0.0)


def _counted() -> float:
    """Processor time without what is not counted."""
    return time.process_time() - _uncounted.get()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give up a set-up at the first compilation or block of rows that begins after this time.

    Parameters
    ----------
    seconds : float
        Processor time from now, which does not depend on what else the machine does. A limit
        within another one ends no later than that.
    """
    token = _ends.set(min(_counted() + seconds, _ends.get()))
    try:
        yield
    finally:
        _ends.reset(token)


@contextmanager
def share_of_rest(share: float) -> Iterator[None]:
    """The same with a share of the time that is left."""
    with within(share * (_ends.get() - _counted())):
        yield


@contextmanager
def uncounted() -> Iterator[None]:
    """Do not count the time of what is done.

    For functions that serve all models, and are compiled by the first set-up on a machine.
    """
    before, started = _uncounted.get(), time.process_time()
    try:
        yield
    finally:
        _uncounted.set(before + time.process_time() - started)


def end_if_late() -> None:
    """End a set-up that takes too long; called wherever much work begins.

    Raises
    ------
    SetupTooLongError
        The time that `within` allows is over.
    """
    if _counted() > _ends.get():
        raise SetupTooLongError("set-up took longer than it can save")
