"""Numerical check of touching rows: no other row may change."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import NotRowwiseError

__all__ = ["verify_touching"]

_MOST_GROUPS = 64


def verify_touching(
    touching: Sequence[NDArray[np.integer] | None],
    differences: Callable[[NDArray, NDArray, NDArray[np.int64]], NDArray[np.float64]],
    n_rows: int,
    *,
    rng: np.random.Generator,
    dtype: np.dtype,
    max_rows: int = 10_000,
) -> None:
    """Flip entries at random configurations, and check that only rows that they touch change.

    Entries are flipped one at a time, in pairs, in fours and so on up to half of them, each time at
    a new random configuration, and the rows that none of the flipped entries touches are
    compared.

    Parameters
    ----------
    touching : sequence of int arrays or None
        Rows that each binary entry touches; None for all rows.
    differences : callable
        ``f(proposed, current, rows)``: differences of the log-likelihoods, nats.
    n_rows : int
        Number of rows.
    rng : numpy.random.Generator
        Source of configurations and rows.
    dtype : dtype
        Type of a configuration.
    max_rows : int
        Number of rows that are compared at each configuration.

    Raises
    ------
    NotRowwiseError
        A row changes that none of the flipped entries touches.
    """
    free = np.flatnonzero([rows is not None for rows in touching])
    if free.size == 0:
        return
    for flipped in _groups(free, rng):
        current = rng.integers(0, 2, size=len(touching)).astype(dtype)
        proposed = current.copy()
        proposed[flipped] = 1 - proposed[flipped]
        untouched = np.ones(n_rows, dtype=bool)
        for entry in flipped:
            untouched[touching[entry]] = False
        rows = np.flatnonzero(untouched)
        if rows.size > max_rows:
            rows = np.sort(rng.choice(rows, size=max_rows, replace=False))
        if rows.size:
            _refuse_change(differences(proposed, current, rows))


def _groups(entries: NDArray[np.intp], rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Groups of entries of doubling sizes; every entry once in each size, up to some groups."""
    size = 1
    while size <= max(entries.size // 2, 1):
        shuffled = rng.permutation(entries)
        for start in range(0, min(entries.size, size * _MOST_GROUPS), size):
            yield shuffled[start : start + size]
        size *= 2


def _refuse_change(changes: NDArray[np.float64]) -> None:
    known = changes[~np.isnan(changes)]  # a row that is impossible before and after says nothing
    if np.any(known != 0.0):
        raise NotRowwiseError(
            "a factor changes with a variable that it does not read according to the model's "
            "graph, so the factors that an update needs are unknown: leave the variable to "
            "pm.BinaryGibbsMetropolis."
        )
