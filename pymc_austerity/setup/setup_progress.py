"""The current stage of set-up, shown on terminals and in notebooks."""

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

_LONG = 1.0
"""Seconds of silence."""

Say: TypeAlias = Callable[[str], object]
"""Show the user which stage begins."""


@contextmanager
def setup_progress(name: str) -> Iterator[Say]:
    """Show a spinner with the current stage on terminals and in notebooks.

    Elsewhere, the log says that set-up is under way if it takes more than a second.

    Examples
    --------
    >>> with setup_progress("AusterityMH") as say:
    ...     _ = say("finding the posterior mode")
    """
    console = Console(stderr=True)
    # Without ipywidgets rich fills the cell with warnings.
    in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
    if not (in_notebook or (console.is_terminal and not console.is_jupyter)):
        stage = _Stage(str)
        with _logged_if_long(name, stage):
            yield stage.begin
        return
    with console.status(f"{name}: starting") as status:
        stage = _Stage(lambda text: status.update(f"{name}: {text}"))
        _shown.append(stage)
        try:
            yield stage.begin
        finally:
            _shown.remove(stage)


@contextmanager
def _logged_if_long(name: str, stage: "_Stage") -> Iterator[None]:
    timer = threading.Timer(
        _LONG, lambda: _log.info(f"{name} is setting up, which takes a while: {stage.text} ...")
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


class _Stage:
    """The stage that is shown."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self._show, self.text = show, "starting"

    def begin(self, text: str) -> None:
        """Show another stage."""
        end_if_late()
        self.text = text
        self._show(text)

    def add(self, words: str) -> None:
        """Show more about the stage."""
        self._show(f"{self.text}{words}")


_shown: list[_Stage] = []
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
    if not _shown:
        yield lambda more: None
        return
    stage, started, done = _shown[-1], time.perf_counter(), 0

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
