"""The current stage of set-up, shown on terminals and in notebooks."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeAlias

from rich.console import Console

from pymc_austerity.time_limit import end_if_late

_log = logging.getLogger("pymc.austerity")

_LONG, _VERY_LONG = 1.0, 15.0
"""Seconds of silence in the log, before its first line and between others."""

Say: TypeAlias = Callable[[str], object]
"""Show the user which stage begins."""


@contextmanager
def setup_progress(name: str, first: str = "starting") -> Iterator["Stage"]:
    """Show a spinner with the current stage on terminals and in notebooks, and time the stages.

    Elsewhere, the log says that set-up is under way if it takes more than a second, and names
    another stage after each further 15 seconds.

    Parameters
    ----------
    name : str
        What is set up.
    first : str
        The first stage.

    Examples
    --------
    >>> with setup_progress("AusterityMH") as say:
    ...     say("finding the posterior mode")
    >>> list(say.seconds)
    ['starting', 'finding the posterior mode']
    """
    console = Console(stderr=True)
    # Without ipywidgets rich fills the cell with warnings.
    in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
    if in_notebook or (console.is_terminal and not console.is_jupyter):
        with console.status(f"{name}: {first}") as status:
            stage = Stage(lambda text: status.update(f"{name}: {text}"), first)
            yield from _until_its_end(stage)
        return
    stage = Stage(str, first)
    with _logged_if_long(name, stage):
        yield from _until_its_end(stage)


def _until_its_end(stage: "Stage") -> Iterator["Stage"]:
    _under_way.append(stage)
    try:
        yield stage
    finally:
        _under_way.remove(stage)
        stage.end()


@contextmanager
def _logged_if_long(name: str, stage: "Stage") -> Iterator[None]:
    over = threading.Event()

    def log() -> None:
        said, silence = "", _LONG
        while not over.wait(silence):
            if stage.text != said:
                words = "still setting up" if said else "setting up, which takes a while"
                _log.info(f"{name} is {words}: {stage.text} ...")
                said, silence = stage.text, _VERY_LONG

    thread = threading.Thread(target=log, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Stage:
    """The stage that is shown; called with words, it becomes another one.

    Attributes
    ----------
    text : str
        Words for the stage.
    seconds : dict of str to float
        What stages took that are over.
    """

    def __init__(self, show: Callable[[str], object], first: str = "starting") -> None:
        self._show, self.text = show, first
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    def __call__(self, text: str) -> None:
        """Show another stage."""
        end_if_late()
        self._turn_to(text)

    def _turn_to(self, text: str) -> None:
        self.end()
        self.text = text
        self._show(text)

    @contextmanager
    def shown(self, text: str) -> Iterator[None]:
        """Show another stage for the time of a block."""
        before = self.text
        self._turn_to(text)
        try:
            yield
        finally:
            self._turn_to(before)

    def end(self) -> None:
        """Note what the stage took."""
        now = time.perf_counter()
        self.seconds[self.text] = self.seconds.get(self.text, 0.0) + now - self._began
        self._began = now

    def add(self, words: str) -> None:
        """Show more about the stage."""
        self._show(f"{self.text}{words}")


_under_way: list[Stage] = []
"""Stages of set-ups that are under way, the last one the innermost."""


@contextmanager
def rows_done(n_rows: int) -> Iterator[Callable[[int], None]]:
    """Show the share of the rows that a pass has read, and the time that the others will take.

    Parameters
    ----------
    n_rows : int
        Number of rows of the pass.

    Examples
    --------
    >>> with rows_done(100) as tell:
    ...     tell(60)  # this many more rows than before
    """
    if not _under_way:
        yield lambda more: None
        return
    stage, started, done = _under_way[-1], time.perf_counter(), 0

    def tell(more: int) -> None:
        nonlocal done
        done = min(done + more, n_rows)
        left = (time.perf_counter() - started) * (n_rows - done) / max(done, 1)
        stage.add(f" ({done / n_rows:.0%}, {_duration(left)} left)")

    yield tell


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.0f} h"


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector; also works as a decorator.

    PyTensor makes hundreds of thousands of objects for a model, most of which stay in use. Repeated
    garbage collection among them takes a fifth of the time of set-up.

    Examples
    --------
    >>> import gc
    >>> with collection_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
