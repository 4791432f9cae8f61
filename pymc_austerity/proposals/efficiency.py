"""How far proposals take a chain, and what that costs."""

from typing import NamedTuple

__all__ = ["Efficiency"]

_OVERHEAD_ROWS = 300.0
"""Rows that could be evaluated in the time that a decision takes apart from its rows."""


class Efficiency(NamedTuple):
    """Distances, waits and costs of a sequence of proposals.

    Attributes
    ----------
    n_moves, n_tries : float
        Numbers of accepted proposals and of all proposals.
    travelled : float
        Sum of squared jump distances, in standard deviations squared.
    squared_waits : float
        Sum of the squared numbers of tries between moves.
    cost : float
        Rows evaluated, plus those that could have been evaluated in the rest of the time.
    waiting : int
        Tries since the last move.

    Examples
    --------
    >>> efficiency = Efficiency().rejected(n_rows_used=100).accepted(100, squared_distance=2.0)
    >>> efficiency.n_tries, efficiency.distance_per_wait
    (2.0, 1.0)
    """

    n_moves: float = 0.0
    n_tries: float = 0.0
    travelled: float = 0.0
    squared_waits: float = 0.0
    cost: float = 0.0
    waiting: int = 0

    def rejected(self, n_rows_used: int) -> "Efficiency":
        """Efficiency after one more proposal, which was rejected."""
        return Efficiency(
            self.n_moves,
            self.n_tries + 1,
            self.travelled,
            self.squared_waits,
            self.cost + (n_rows_used + _OVERHEAD_ROWS),
            self.waiting + 1,
        )

    def accepted(self, n_rows_used: int, squared_distance: float) -> "Efficiency":
        """Efficiency after one more proposal, which was accepted."""
        return Efficiency(
            self.n_moves + 1,
            self.n_tries + 1,
            self.travelled + squared_distance,
            self.squared_waits + (self.waiting + 1) ** 2,
            self.cost + (n_rows_used + _OVERHEAD_ROWS),
            0,
        )

    def discounted(self) -> "Efficiency":
        """Efficiency with half the weight on the proposals so far, which precede convergence."""
        return Efficiency(
            0.5 * self.n_moves,
            0.5 * self.n_tries,
            0.5 * self.travelled,
            0.5 * self.squared_waits,
            0.5 * self.cost,
            self.waiting,
        )

    @property
    def distance_per_wait(self) -> float:
        """Squared distance of a move per wait, where the wait is that of a randomly chosen step."""
        if self.n_moves == 0 or self.n_tries == 0:
            return 0.0
        wait = (self.squared_waits + self.waiting**2) / self.n_tries
        return self.travelled / self.n_moves / wait

    @property
    def distance_per_row(self) -> float:
        """Squared distance of a move, per wait, per row."""
        return self.distance_per_wait and self.distance_per_wait * self.n_tries / self.cost
