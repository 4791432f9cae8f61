"""Sampling rows without replacement: fresh at random, as windows, or simply all."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows.passes import LARGEST_BLOCK, Block, RowSource
from pymc_austerity.strata import Strata, first_of_permutation, first_run, key_of, place_in_runs

_LONGEST_RUN = 16
"""Rows that are read together: reading them costs little more than reading one."""

_FEWEST_RUNS = 1_000


@dataclass(frozen=True)
class Windows:
    """Short runs of consecutive rows, at positions that are drawn anew for every decision.

    A single long window would be faster still, but a given order of the rows contains only a few
    of these: decisions between the same points would err in the same direction again and again.
    There are so many choices of short runs that samples behave like fresh ones in any order.

    Parameters
    ----------
    source : RowSource
        Rows in random order.

    Notes
    -----
    Run ``j`` of a sample begins at row ``s + r (a j mod p)``, where ``r`` is the length of a run
    and ``p`` the largest prime number of runs; the start ``s`` and the factor ``a`` are random. So
    all rows are equally likely at every look, and so are all pairs of runs. Rows that remain after
    ``p`` runs come last. Data with fewer than 1,000 runs have runs of a single row.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.rows import ArrayRows
    >>> rows = Windows(ArrayRows([np.arange(40_000)])).begin(np.random.default_rng(1))
    >>> (block,) = rows.read(24)
    >>> block[0]
    array([20472, 20473, 20474, 20475, 20476, 20477, 20478, 20479, 20480,
           20481, 20482, 20483, 20484, 20485, 20486, 20487, 18136, 18137,
           18138, 18139, 18140, 18141, 18142, 18143])
    """

    source: RowSource

    def begin(self, rng: np.random.Generator) -> "_Stream":
        """Choose where the runs of a new sample lie."""
        n_rows, runs = self.source.n_rows, self.runs
        how = *runs, *first_run(n_rows, runs.n_runs, rng)

        def block(first: int, end: int) -> Block:
            return self.source.take(place_in_runs(np.arange(first, end), n_rows, *how))

        return _Stream(block)

    @cached_property
    def runs(self) -> "_Runs":
        """Length and number of the runs, the same for all decisions."""
        n_rows = self.source.n_rows
        length = max(1, min(_LONGEST_RUN, n_rows // _FEWEST_RUNS))
        return _Runs(_largest_prime(n_rows // length), length)


class _Runs(NamedTuple):
    """Runs of consecutive rows: how many there are, and how long they are."""

    n_runs: int
    length: int


def _largest_prime(largest: int) -> int:
    """The largest prime number that is not above another one; 1 if there is none."""
    for number in range(largest, 1, -1):
        if all(number % factor for factor in range(2, math.isqrt(number) + 1)):
            return number
    return 1


@dataclass(slots=True)
class _Stream:
    """Rows of a sample, by what gives those between two places in it."""

    block: Callable[[int, int], Block]
    n_read: int = 0

    def read(self, n_rows: int) -> Iterator[Block]:
        end = self.n_read + n_rows
        while self.n_read < end:
            first, self.n_read = self.n_read, min(self.n_read + LARGEST_BLOCK, end)
            yield self.block(first, self.n_read)


@dataclass(frozen=True)
class AllRows:
    """All rows in storage order; uses no random number.

    Parameters
    ----------
    source : RowSource
        Rows in any order.
    """

    source: RowSource

    def begin(self, rng: np.random.Generator) -> _Stream:
        """Start at the first row."""
        return _Stream(self.source.window)


@dataclass(frozen=True)
class FreshRows:
    """Rows drawn uniformly at random without replacement at every look, as in the paper.

    Parameters
    ----------
    source : RowSource
        Rows in any order.

    Notes
    -----
    The cost depends on the number of rows drawn, not on the number of all rows: see
    `pymc_austerity.strata.drawn_number`.
    """

    source: RowSource

    def begin(self, rng: np.random.Generator) -> _Stream:
        """Start with no row read."""
        n_rows, key = self.source.n_rows, key_of(rng)

        def block(first: int, end: int) -> Block:
            return self.source.take(first_of_permutation(n_rows, end, key, first))

        return _Stream(block)


def in_order(labels: NDArray[np.integer]) -> NDArray[np.intp]:
    """Rows label by label; short integers are sorted in time proportional to their number."""
    is_short = labels.max(initial=0) < 2**16
    return np.argsort(labels.astype(np.uint16) if is_short else labels, kind="stable")


def in_random_order(labels: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows label by label, in uniformly random order within each."""
    order = rng.permutation(labels.size)
    return order[in_order(labels[order])]


def equal_total_score(scores: NDArray[np.float64], n_strata: int) -> NDArray[np.int64]:
    """Where to cut falling scores into strata of about the same total."""
    total = np.cumsum(scores)
    if not total.size or not total[-1] > 0.0:
        return np.empty(0, dtype=np.int64)
    shares = np.arange(1, n_strata) / n_strata * total[-1]
    return np.searchsorted(total, shares) + 1


@dataclass(frozen=True, eq=False)
class StratifiedWindows:
    """Consecutive rows of each stratum from random starts, wrapping around within the stratum.

    Parameters
    ----------
    source : RowSource
        Rows stored stratum by stratum, in random order within each.
    strata : Strata
        Where they are.
    """

    source: RowSource
    strata: Strata

    def begin(self, rng: np.random.Generator) -> "_StratifiedWindowStream":
        """Start at a uniformly random row of each stratum."""
        sizes = self.strata.sizes
        return _StratifiedWindowStream(self, (rng.random(sizes.size) * sizes).astype(np.int64))


@dataclass(slots=True)
class _StratifiedWindowStream:
    windows: StratifiedWindows
    positions: NDArray[np.int64]

    def read(self, counts: NDArray[np.int64]) -> Iterator[Block]:
        """The next ``counts[h]`` rows of each stratum, one stratum after another, in blocks."""
        positions, strata, ends = self.positions, self.windows.strata, np.cumsum(counts)
        self.positions = positions + counts  # each stratum is a ring
        for start in range(0, int(ends[-1]), LARGEST_BLOCK):
            rows = np.arange(start, min(start + LARGEST_BLOCK, int(ends[-1])))
            owners = np.searchsorted(ends, rows, side="right")
            places = (positions - ends + counts)[owners] + rows
            yield self.windows.source.take(places % strata.sizes[owners] + strata.offsets[owners])
