"""The settings of a step method, checked when they are given."""

from dataclasses import dataclass
from typing import Literal

from pymc_austerity.step_methods.checks import (
    checked_batch_size,
    checked_choice,
    checked_count,
    checked_fraction,
)

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """What the user chose; see `AusterityMH` for the meaning of each.

    Raises
    ------
    SettingError, SettingTypeError
        A value cannot be used.
    """

    epsilon: float = 0.05
    batch_size: int | None = None
    rows: Literal["windows", "fresh"] = "windows"
    control_variates: Literal["auto", 1, 2] | None = "auto"
    strata: Literal["auto"] | None = "auto"
    audit: float = 0.0
    steps_per_draw: int = 1

    def __post_init__(self) -> None:
        tail = "the tail probability at which the test stops"
        checked = {
            "epsilon": checked_fraction("epsilon", self.epsilon, 0.5, tail),
            "batch_size": checked_batch_size(self.batch_size),
            "audit": checked_fraction("audit", self.audit, 1.0, "the share of decisions to check"),
            "steps_per_draw": checked_count("steps_per_draw", self.steps_per_draw),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        checked_choice("rows", self.rows, ("windows", "fresh"))
        checked_choice("control_variates", self.control_variates, ("auto", 1, 2, None))
        checked_choice("strata", self.strata, ("auto", None))

    @property
    def order(self) -> int:
        """Order of the control variates that are wanted; 0 for none."""
        if self.control_variates is None:
            return 0
        return 2 if self.control_variates == "auto" else self.control_variates
