"""Step sizes: a number, or a function from the number of a step."""

from collections.abc import Callable
from typing import Any

from pymc_austerity.arguments import checked_positive
from pymc_austerity.errors import SettingError

__all__ = ["StepSizeSchedule", "check_step_size", "checked_size"]

StepSizeSchedule = Callable[[int], float]
"""Maps the number of a step of the chain, counted from 0, to the step size."""

_STEPS_TRIED = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Steps for which a schedule is tried before it is used."""


def check_step_size(value: Any) -> None:
    """Raise an error unless the value is None, a step size or a schedule of step sizes."""
    if value is None:
        return
    if isinstance(value, type) or not callable(value):
        checked_size(value, "step_size")
        return
    for step in _STEPS_TRIED:
        try:
            size = value(step)
        except Exception as error:
            raise SettingError(
                f"step_size({step}) raised {type(error).__name__} ({error}): a schedule takes the "
                "number of a step, from 0, and returns a step size."
            ) from error
        checked_size(size, f"step_size({step})")


def checked_size(value: Any, name: str) -> float:
    """Check a positive number, or raise an error that says what to give."""
    return checked_positive(name, value, "a step size")
