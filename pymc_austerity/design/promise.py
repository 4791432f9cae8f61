"""A sequential test and its promised error."""

import math
from dataclasses import dataclass
from typing import ClassVar

from pymc_austerity.design.wording import percentage

__all__ = ["TestDesign"]


@dataclass(frozen=True)
class TestDesign:
    """A sequential test, with its expected error and cost.

    Attributes
    ----------
    batch_size : int
        Rows of the first look, m; with constant looks, of every look.
    epsilon, alpha : float
        Parameters of the boundary, see `Boundary`.
    expected_error : float
        Expected share of wrong decisions.
    worst_error : float
        Probability of a wrong decision right at the threshold. No decision errs more often.
    expected_data_fraction : float
        Expected share of the rows read for a decision.
    expected_acceptance_error : float
        Expected absolute error of the acceptance probability; NaN where it is not known.
    """

    __test__: ClassVar[bool] = False  # not a test of this package, whatever its name begins with

    batch_size: int
    epsilon: float
    alpha: float
    expected_error: float
    worst_error: float
    expected_data_fraction: float
    expected_acceptance_error: float = math.nan

    def __str__(self) -> str:
        off = ""
        if not math.isnan(self.expected_acceptance_error):
            acceptance = percentage(self.expected_acceptance_error)
            off = f" (acceptance probabilities are off by {acceptance})"
        return (
            f"batch_size {self.batch_size}, epsilon {self.epsilon:.3g}, alpha {self.alpha:g}: "
            f"reads {self.expected_data_fraction:.1%} of the rows; expect "
            f"{percentage(self.expected_error)} of all decisions to be wrong{off}; "
            f"a decision exactly at the threshold is wrong with probability {self.worst_error:.2g}"
        )
