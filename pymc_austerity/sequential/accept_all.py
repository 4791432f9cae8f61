"""No test: every proposal is accepted."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pymc_austerity.sequential.protocols import Decision, Survey, TestDescription

__all__ = ["AcceptAll"]

_ACCEPTED = Decision(True, 0, 0, 0.0, math.nan, False)


@dataclass(frozen=True)
class AcceptAll:
    """Accepts every proposal and reads no rows, for chains that are not corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import AcceptAll
    >>> AcceptAll().decide(None, -1e9, np.random.default_rng(1)).accept
    True
    """

    description: ClassVar[TestDescription] = TestDescription(
        name="None",
        summary="no test: every proposal is accepted, and draws have the error of the proposal",
        acceptance="none",
    )

    def decide(self, survey: Survey, log_ratio: float, rng: np.random.Generator) -> Decision:
        """Accept."""
        return _ACCEPTED
