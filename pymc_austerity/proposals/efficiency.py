"""How far proposals take a chain, and what that costs."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Efficiency", "distances_per_row"]

_OVERHEAD_ROWS = 300.0
"""Rows that could be evaluated in the time that a decision takes apart from its rows."""

_FEW = 2.0
"""Costly decisions that a component is taken to have made as often as all, besides its own."""


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
    squared_cost : float
        Sum of the squared costs of the proposals.
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
    squared_cost: float = 0.0
    waiting: int = 0

    def rejected(self, n_rows_used: int) -> "Efficiency":
        """Efficiency after one more proposal, which was rejected."""
        cost = n_rows_used + _OVERHEAD_ROWS
        return Efficiency(
            self.n_moves,
            self.n_tries + 1,
            self.travelled,
            self.squared_waits,
            self.cost + cost,
            self.squared_cost + cost * cost,
            self.waiting + 1,
        )

    def accepted(self, n_rows_used: int, squared_distance: float) -> "Efficiency":
        """Efficiency after one more proposal, which was accepted."""
        cost = n_rows_used + _OVERHEAD_ROWS
        return Efficiency(
            self.n_moves + 1,
            self.n_tries + 1,
            self.travelled + squared_distance,
            self.squared_waits + (self.waiting + 1) ** 2,
            self.cost + cost,
            self.squared_cost + cost * cost,
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
            0.5 * self.squared_cost,
            self.waiting,
        )

    @property
    def distance_per_wait(self) -> float:
        """Squared distance of a move per wait, where the wait is that of a randomly chosen step."""
        if self.n_moves == 0 or self.n_tries == 0:
            return 0.0
        wait = (self.squared_waits + self.waiting**2) / self.n_tries
        return self.travelled / self.n_moves / wait


def distances_per_row(components: Sequence[Efficiency]) -> list[float]:
    r"""Squared distance of a move, per wait, per row, for each of several components.

    If a few decisions read most of the rows, it is by chance which components made them. Therefore
    the mean cost of a component with :math:`n` tries that cost :math:`C` is estimated as

    .. math:: \frac{C + m \bar c}{n + m}, \qquad m = 2 \, N \, \frac{\sum c^2}{(\sum c)^2}

    with the mean cost :math:`\bar c` of all :math:`N` tries. As :math:`(\sum c)^2 / \sum c^2` is
    the number of decisions that make up the whole cost, :math:`m` tries contain two of these: this
    is the posterior mean of a rate with a gamma prior. It is nearly the usual mean where costs are
    alike.

    Parameters
    ----------
    components : sequence of Efficiency

    Examples
    --------
    >>> lucky, unlucky = Efficiency(), Efficiency()
    >>> for n_rows in [100] * 99 + [1_000_000]:
    ...     lucky, unlucky = lucky.accepted(100, 1.0), unlucky.accepted(n_rows, 1.0)
    >>> first, second = distances_per_row([lucky, unlucky])
    >>> round(first / second, 1)
    1.5
    """
    n_tries, cost, squared = (
        sum(getattr(each, name) for each in components)
        for name in ("n_tries", "cost", "squared_cost")
    )
    if not cost:
        return [0.0] * len(components)
    weight = _FEW * n_tries * squared / cost**2
    return [
        each.distance_per_wait * (each.n_tries + weight) / (each.cost + weight * cost / n_tries)
        for each in components
    ]
