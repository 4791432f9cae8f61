"""A time budget of set-up: between stages, a plan that takes too long is given up."""

import time

from pymc_austerity.setup.setup_progress import Say

__all__ = ["SetupTooLongError", "with_deadline"]


class SetupTooLongError(Exception):
    """Set-up has taken longer than its budget; the message is a clause."""


def with_deadline(say: Say, seconds: float) -> Say:
    """Show stages as `say` does, until the time is over.

    Parameters
    ----------
    say : callable
        Shows which stage begins.
    seconds : float
        The budget, from now on. It is checked when a stage begins, so that a stage that has begun
        is completed.

    Raises
    ------
    SetupTooLongError
        By the callable that is returned, when a stage begins after the time is over.

    Examples
    --------
    >>> say = with_deadline(print, 60.0)
    >>> say("compiling")
    compiling
    """
    started = time.perf_counter()

    def say_in_time(stage: str) -> object:
        taken = time.perf_counter() - started
        if taken > seconds:
            raise SetupTooLongError(
                f"set-up has taken {taken:.0f} s before {stage}, more than {seconds:.0f} s"
            )
        return say(stage)

    return say_in_time
