"""What a proposal has brought, and what that cost."""

from dataclasses import dataclass

__all__ = ["Score"]

_OVERHEAD_ROWS = 300.0
"""Rows that could be evaluated in the time that a decision takes besides its rows."""


@dataclass
class Score:
    """How far a component has come, how long it had to wait, and what that cost.

    Attributes
    ----------
    n_moves, n_tries : float
        Accepted and all proposals.
    travelled : float
        Sum of squared jump distances, in standard deviations squared.
    squared_waits : float
        Sum of the squares of the numbers of tries from move to move.
    cost : float
        Rows evaluated, or that could have been in the time.
    waiting : int
        Tries since the last move.
    """

    n_moves: float = 0.0
    n_tries: float = 0.0
    travelled: float = 0.0
    squared_waits: float = 0.0
    cost: float = 0.0
    waiting: int = 0

    def tried(self, n_rows_used: int) -> None:
        """Count a proposal."""
        self.n_tries += 1
        self.waiting += 1
        self.cost += n_rows_used + _OVERHEAD_ROWS

    def moved(self, squared_distance: float) -> None:
        """Count an accepted one."""
        self.n_moves += 1
        self.travelled += squared_distance
        self.squared_waits += self.waiting**2
        self.waiting = 0

    def discount(self) -> None:
        """Let what was learnt on the way to the posterior count less."""
        for name in ("n_moves", "n_tries", "travelled", "squared_waits", "cost"):
            setattr(self, name, 0.5 * getattr(self, name))

    @property
    def distance_per_wait(self) -> float:
        """Squared distance of a move, per wait for it as a random step sees it."""
        if self.n_moves == 0 or self.n_tries == 0:
            return 0.0
        wait = (self.squared_waits + self.waiting**2) / self.n_tries
        return self.travelled / self.n_moves / wait

    @property
    def efficiency(self) -> float:
        """Squared distance of a move, per wait, per row."""
        return self.distance_per_wait and self.distance_per_wait * self.n_tries / self.cost
