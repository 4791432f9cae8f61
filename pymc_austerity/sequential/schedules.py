"""How strict the test is for each draw."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Schedule", "Tightening"]

Schedule: TypeAlias = Callable[[int], float]
"""Maps the number of a draw, counted from 0 at the first tuning draw, to its epsilon."""


@dataclass(frozen=True)
class Tightening:
    """Linear decrease from a loose tail probability to the final one, which then stays constant.

    A loose test is cheaper. It suffices during tuning: far from the posterior, most decisions are
    clear, and draws of the tuning phase are discarded.

    Parameters
    ----------
    epsilon : float
        Final tail probability, in [0, 0.5].
    loosest : float
        Tail probability of the first draw; not below `epsilon`.
    n_draws : int
        Draws after which `epsilon` is reached.

    Examples
    --------
    >>> from pymc_austerity.sequential import Tightening
    >>> schedule = Tightening(0.05, loosest=0.25, n_draws=100)
    >>> [round(schedule(draw), 3) for draw in (0, 50, 100, 10_000)]
    [0.25, 0.15, 0.05, 0.05]
    """

    epsilon: float
    loosest: float = 0.2
    n_draws: int = 500

    def __call__(self, draw: int) -> float:
        """Tail probability of a draw."""
        if draw >= self.n_draws or self.loosest <= self.epsilon:
            return self.epsilon
        return self.loosest + (self.epsilon - self.loosest) * (draw / self.n_draws)
