"""Where a chain is."""

from enum import Enum

__all__ = ["Phase"]


class Phase(Enum):
    """Where a chain is: before its first step or after it, tuning or not.

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
        """Whether the first step of the chain is still to come."""
        return self in (Phase.START, Phase.START_UNTUNED)

    @property
    def is_tuning(self) -> bool:
        """Whether what was learned may still change."""
        return self in (Phase.START, Phase.TUNING)

    def begun(self) -> "Phase":
        """The phase at the first step."""
        return Phase.TUNING if self.is_tuning else Phase.SAMPLING

    def with_tuning(self, tuning: bool) -> "Phase":
        """The same with tuning begun or ended."""
        if self.is_start:
            return Phase.START if tuning else Phase.START_UNTUNED
        return Phase.TUNING if tuning else Phase.SAMPLING
