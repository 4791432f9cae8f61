"""The time that a set-up may take."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from numba.core import event


class SetupTooLongError(RuntimeError):
    """Set-up is not worth the time that it takes; the message is a clause."""


@dataclass
class _Review:
    """When to ask how much time there is in all, and what the answer was."""

    at: float
    ask: Callable[[], float]
    ends: float = math.inf


_ends: ContextVar[float] = ContextVar("_ends", default=math.inf)
_review: ContextVar[_Review | None] = ContextVar("_review", default=None)
_uncounted: ContextVar[float] = ContextVar("_uncounted", default=0.0)


def counted() -> float:
    """Seconds of processor time without what is not counted.

    That is the work inside `uncounted`, and the compilation of functions of this package: they
    serve all models, and a choice must not depend on whether an earlier process has made one.
    """
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
    token = _ends.set(min(counted() + seconds, _ends.get()))
    try:
        yield
    finally:
        _ends.reset(token)


@contextmanager
def share_of_rest(share: float) -> Iterator[None]:
    """The same with a share of the time that is left."""
    with within(share * (_ends.get() - counted())):
        yield


@contextmanager
def reviewed(after: float, ask: Callable[[], float]) -> Iterator[None]:
    """Ask once, after some time of a set-up, how much it may take in all.

    Parameters
    ----------
    after : float
        Seconds of processor time from now.
    ask : callable
        ``f()``: seconds from now, too; the time that it takes itself does not count.
    """
    started = counted()
    token = _review.set(_Review(started + after, lambda: started + ask()))
    try:
        yield
    finally:
        _review.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Do not count the time of what is done."""
    before, started = _uncounted.get(), time.process_time()
    try:
        yield
    finally:
        _uncounted.set(before + time.process_time() - started)


class _SharedCode(event.Listener):
    """Does not count the time in which numba compiles a function of this package."""

    def __init__(self) -> None:
        self._begun: list[float] = []

    def on_start(self, event: Any) -> None:
        self._begun.append(time.process_time())

    def on_end(self, event: Any) -> None:
        seconds = time.process_time() - self._begun.pop()
        module = str(event.data["dispatcher"].py_func.__module__)
        if not self._begun and module.startswith("pymc_austerity."):
            _uncounted.set(_uncounted.get() + seconds)


event.register("numba:compile", _SharedCode())


def end_if_late() -> None:
    """End a set-up that takes too long; called wherever much work begins.

    Raises
    ------
    SetupTooLongError
        The time that `within` allows, or the answer of `reviewed`, is over.
    """
    review, ends = _review.get(), _ends.get()
    if review is not None:
        if counted() > review.at:
            review.at = math.inf
            with uncounted():
                review.ends = review.ask()
        ends = min(ends, review.ends)
    if counted() > ends:
        raise SetupTooLongError("set-up took longer than it can save")
