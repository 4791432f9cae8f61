"""The sequential t-test asked in many random orders of the same rows, by whole arrays.

The tests of the examples hold it against the stopping rules of the package.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pymc_austerity.design import Boundary, constant_looks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OrderedRows:
    """What a test sees of a finite population in random orders.

    Attributes
    ----------
    counts : int array, shape (J - 1,)
        Rows seen at every look but the last, which sees all.
    means, standard_errors : float arrays, shape (n_orders, J - 1)
        Of the rows seen, without replacement.
    n_rows : int
        Rows there are.
    """

    counts: NDArray[np.int64]
    means: Floats
    standard_errors: Floats
    n_rows: int

    @classmethod
    def draw(
        cls, rows: Floats, batch_size: int, n_orders: int, rng: np.random.Generator
    ) -> "OrderedRows":
        """Look at the rows in random orders, a batch at a time."""
        counts = np.arange(batch_size, rows.size, batch_size)
        sums, squares = np.empty((2, n_orders, counts.size))
        order, starts = rows.copy(), np.append(0, counts[:-1])
        for i in range(n_orders):
            rng.shuffle(order)
            seen = order[: counts[-1]]
            sums[i] = np.add.reduceat(seen, starts)
            squares[i] = np.add.reduceat(seen * seen, starts)
        means = sums.cumsum(axis=1) / counts
        variances = (squares.cumsum(axis=1) - counts * means**2) / (counts - 1)
        share_left = 1.0 - (counts - 1) / (rows.size - 1)
        return cls(counts, means, np.sqrt(variances / counts * share_left), rows.size)

    def every(self, n_batches: int) -> "OrderedRows":
        """The same orders, seen by a test that adds so many batches at a look."""
        at = slice(n_batches - 1, None, n_batches)
        return OrderedRows(
            self.counts[at], self.means[:, at], self.standard_errors[:, at], self.n_rows
        )

    def statistics(self, threshold: float = 0.0) -> Floats:
        """Student's t of the mean less a threshold (psi / N) at every look but the last."""
        return (self.means - threshold) / self.standard_errors


def quantiles(counts: NDArray[np.int64], n_rows: int, boundary: Boundary) -> Floats:
    """Values of Student's t beyond which the test stops, one for every look but the last."""
    level = stats.norm.sf(boundary.at(constant_looks(int(counts[0]), n_rows)))
    return stats.t.isf(level, counts - 1)


def ask_test(
    statistics: Floats, limits: Floats, last: float
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether the test accepts in every order, and at which look it stops.

    Parameters
    ----------
    statistics : float array, shape (n_orders, J - 1)
        Student's t.
    limits : float array, shape (J - 1,)
        Where to stop.
    last : float
        What all rows say; its sign counts.
    """
    n_orders = len(statistics)
    stops = np.column_stack([np.abs(statistics) > limits, np.ones(n_orders, dtype=bool)])
    at = stops.argmax(axis=1)
    decided = np.column_stack([statistics, np.full(n_orders, last)])[np.arange(n_orders), at]
    return decided > 0.0, at


@dataclass(frozen=True)
class Acceptance:
    """A proposal's probability to be accepted by a test, over orders and uniform numbers.

    Attributes
    ----------
    error : float
        That probability minus the exact one (Delta, equation 6 of the paper).
    wrong : float
        Probability that a decision is not that of all rows.
    data_fraction : float
        Expected share of the rows read.
    """

    error: float
    wrong: float
    data_fraction: float


def acceptance(
    seen: OrderedRows, boundary: Boundary, mean: float, log_threshold: float, n_uniform: int = 24
) -> Acceptance:
    """Ask a test about one proposal, for uniform numbers at the midpoints of n intervals.

    Parameters
    ----------
    seen : OrderedRows
        Differences of the rows in random orders.
    boundary : Boundary
        Where the test stops.
    mean : float
        Mean of all differences, nats.
    log_threshold : float
        What their sum must exceed at u = 1, nats.
    n_uniform : int
        Intervals.
    """
    limits = quantiles(seen.counts, seen.n_rows, boundary)
    shares = np.append(seen.counts, seen.n_rows) / seen.n_rows
    log_u = np.log((np.arange(n_uniform) + 0.5) / n_uniform)
    found = []
    for threshold in (log_u + log_threshold) / seen.n_rows:
        accepted, at = ask_test(seen.statistics(threshold), limits, mean - threshold)
        exact = mean > threshold
        found.append((np.mean(accepted) - exact, np.mean(accepted != exact), shares[at].mean()))
    return Acceptance(*np.mean(found, axis=0).tolist())
