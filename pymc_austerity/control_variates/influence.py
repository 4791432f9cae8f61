"""How badly the expansion fits each row, measured on pilot pairs."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import RowSource, blocks_of

__all__ = ["differences_of_all", "influence_scores"]


def influence_scores(
    function: Callable[..., NDArray],
    pairs: Sequence[tuple[NDArray, NDArray]],
    source: RowSource,
) -> NDArray[np.float64]:
    """Root mean square of the differences of each row over pilot pairs of points.

    The differences of a pair are divided by their own root mean square over the rows, so that
    every pair counts alike, and multiplied by that of the median pair.

    Parameters
    ----------
    function : callable
        Row differences, or their residuals.
    pairs : sequence of (proposed, current)
        Pairs as the sampler would meet them.
    source : RowSource
        All rows.

    Returns
    -------
    float array, shape (n_rows,)
        Scores, nats; rows that are not finite for some pair get the largest one.
    """
    squares, sizes = np.zeros(source.n_rows), []
    for proposed, current in pairs:
        own = differences_of_all(function, proposed, current, source)
        np.square(own, out=own)
        mean_square = float(np.mean(own, where=np.isfinite(own)))
        sizes.append(mean_square)
        if mean_square > 0.0:
            own /= mean_square
            squares += own
    scores = np.sqrt(squares / len(pairs) * np.median(sizes))
    known = np.isfinite(scores)
    return np.where(known, scores, scores[known].max(initial=0.0))


def differences_of_all(
    function: Callable[..., NDArray], proposed: NDArray, current: NDArray, source: RowSource
) -> NDArray[np.float64]:
    """Differences of all rows between two points, in the order in which they are stored.

    Returns
    -------
    float array, shape (n_rows,), nats
    """
    differences, done = np.empty(source.n_rows), 0
    for block in blocks_of(source):
        values = function(proposed, current, *block)
        differences[done : done + values.size] = values
        done += values.size
    return differences
