"""What set-up is doing, shown while it takes longer than a moment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeAlias

from rich.console import Console

__all__ = ["Say", "setup_progress"]

Say: TypeAlias = Callable[[str], object]
"""Tell the user which stage begins."""


@contextmanager
def setup_progress(name: str) -> Iterator[Say]:
    """Show a spinner with the current stage on terminals and in notebooks, nothing elsewhere.

    Examples
    --------
    >>> with setup_progress("AusterityMH") as say:
    ...     _ = say("finding the posterior mode")
    """
    console = Console(stderr=True)
    # Without ipywidgets rich fills the cell with warnings.
    in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
    if not (in_notebook or (console.is_terminal and not console.is_jupyter)):
        yield lambda text: None
        return
    with console.status(f"{name}: starting") as status:
        yield lambda text: status.update(f"{name}: {text}")
