"""A function in a process of its own, so that one that dies or never ends takes nothing along."""

import logging
import multiprocessing
import resource
from collections.abc import Callable
from typing import Any


def how_it_ended(function: Callable[..., None], *arguments: Any, seconds: int) -> str:
    """Run a function in a fork of this process, which has imported everything already.

    Parameters
    ----------
    function : callable
        What to run.
    *arguments
        For it.
    seconds : int
        Processor time after which it is ended.

    Returns
    -------
    str
        Why it did not return; empty if it did.

    Raises
    ------
    RuntimeError
        It raised an exception, which is on standard error.
    """
    process = multiprocessing.get_context("fork").Process(
        target=_limited, args=(function, arguments, seconds)
    )
    process.start()
    process.join()
    if process.exitcode == 0:
        return ""
    if process.exitcode is None or process.exitcode > 0:
        raise RuntimeError(f"{function.__name__} failed")
    return f"did not end within {seconds} s of processor time, or was killed"


def _limited(function: Callable[..., None], arguments: tuple[Any, ...], seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    logging.getLogger("pymc").setLevel(logging.ERROR)
    function(*arguments)
