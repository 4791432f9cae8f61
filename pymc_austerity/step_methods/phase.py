"""The phase of a chain."""

from enum import Enum

__all__ = ["Phase"]


class Phase(Enum):
    """The phase of a chain: before or after its first step, tuning or not.

    Examples
    --------
    >>> Phase.START.with_tuning(False).begun()
    <Phase.SAMPLING: 'sampling'>
    """

    START = "start"
    START_UNTUNED = "start without tuning"
    TUNING = "tuning"
    SAMPLING = "sampling"

    @property
    def is_start(self) -> bool:
        """Whether the first step of the chain has not been taken yet."""
        return self in (Phase.START, Phase.START_UNTUNED)

    @property
    def is_tuning(self) -> bool:
        """Whether learned quantities may still change."""
        return self in (Phase.START, Phase.TUNING)

    def begun(self) -> "Phase":
        """The phase at the first step."""
        return Phase.TUNING if self.is_tuning else Phase.SAMPLING

    def with_tuning(self, tuning: bool) -> "Phase":
        """The same phase with tuning turned on or off."""
        if self.is_start:
            return Phase.START if tuning else Phase.START_UNTUNED
        return Phase.TUNING if tuning else Phase.SAMPLING
