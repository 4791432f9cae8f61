"""Risk: the squared error of an average over a chain that grows."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from examples.austerity2014.timed import TimedRun

Floats = NDArray[np.float64]

Statistic = Callable[[Floats], Floats]
"""What is averaged: draws, shape (n, ...), to values, shape (n, k)."""

SURE = 2.0
"""A difference of more standard errors than this counts as more than chance."""

_BLOCK = 2_000


def squared_errors(
    draws: Floats, statistic: Statistic, truth: Floats, counts: Sequence[int]
) -> Floats:
    """Squared error of the average over the first draws, averaged over what is estimated.

    Parameters
    ----------
    draws : float array, shape (n, ...)
        One chain.
    statistic : callable
        What is averaged, with k values for every draw.
    truth : float array, shape (k,)
        What the averages should be.
    counts : sequence of int
        Increasing numbers of draws.

    Returns
    -------
    float array, shape (len(counts),)

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.array([[1.0], [3.0], [5.0]])
    >>> squared_errors(draws, lambda x: x, np.array([2.0]), [1, 3])
    array([1., 1.])
    """
    total, errors = np.zeros_like(truth), []
    for start, stop in pairwise([0, *counts]):
        for begin in range(start, stop, _BLOCK):
            total += statistic(draws[begin : min(begin + _BLOCK, stop)]).sum(axis=0)
        errors.append(np.mean((total / stop - truth) ** 2))
    return np.array(errors)


def curve(
    run: TimedRun,
    names: str | Sequence[str],
    statistic: Statistic,
    truth: Floats,
    *,
    n_points: int = 30,
) -> dict[str, Any]:
    """Risk of every chain of a run against steps, seconds and rows read.

    Parameters
    ----------
    run : TimedRun
        One chain or several.
    names : str or sequence of str
        Variable whose draws the statistic takes, or several, joined.
    statistic, truth
        As in `squared_errors`.
    n_points : int
        Numbers of draws at which the risk is evaluated, evenly spaced on a log scale.

    Returns
    -------
    dict
        ``steps``; ``seconds`` and ``rows``, means over the chains, each a list of floats;
        ``risk``, a list of such lists, one for every chain; ``before``, the seconds of set-up and
        tuning.
    """
    draws = run.draws(names) if isinstance(names, str) else run.joined(names)
    counts = np.unique(np.geomspace(min(10, draws.shape[1]), draws.shape[1], n_points).astype(int))
    risks = [squared_errors(chain, statistic, truth, counts.tolist()) for chain in draws]
    return {
        "before": round(run.before, 2),
        "steps": (run.steps_per_draw * counts).tolist(),
        "seconds": run.seconds[:, counts - 1].mean(axis=0).round(4).tolist(),
        "rows": run.rows[:, counts - 1].mean(axis=0).round().tolist(),
        "risk": [[float(f"{value:.4g}") for value in risk] for risk in risks],
    }


def together(curves: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One curve of chains that were sampled one by one; times and rows are means over them."""
    mean = {
        name: np.mean([each[name] for each in curves], axis=0).round(4).tolist()
        for name in ("before", "seconds", "rows")
    }
    return {
        **mean,
        "steps": curves[0]["steps"],
        "risk": [risk for each in curves for risk in each["risk"]],
    }


def standard_errors(above: Floats, below: Floats) -> float:
    """By how many standard errors of the difference the mean of chains is above that of others.

    Each array has one error for every chain; the standard error is that of their spread.

    Examples
    --------
    >>> import numpy as np
    >>> standard_errors(np.array([5.0, 7.0]), np.array([2.0, 2.0]))
    4.0
    """
    difference = above.mean() - below.mean()
    spread = np.sqrt(above.var(ddof=1) / above.size + below.var(ddof=1) / below.size)
    return float(difference / spread) if difference else 0.0


def in_errors(difference: float) -> str:
    """A difference in standard errors as text, which says so where it may be chance.

    Examples
    --------
    >>> in_errors(4.04), in_errors(1.5)
    ('4.0 standard errors', '1.5 standard errors, which may be chance')
    """
    return f"{difference:.1f} standard errors{'' if difference > SURE else ', which may be chance'}"
