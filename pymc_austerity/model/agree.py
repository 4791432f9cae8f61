"""The numerical guard of faster ways to evaluate rows: do they give the cut graph's numbers?"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.model.row_likelihood import ModelAt
from pymc_austerity.model.verify import Verified, finite_nearby

_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}
"""Error of a difference, relative to one plus the log-densities; by precision of the model."""
_SAFETY = 10.0
_POINTS, _MOST_ROWS = 3, 1_000


def differences_agree(
    differences: Callable[..., NDArray], at: ModelAt, verified: Verified, rng: np.random.Generator
) -> bool:
    """Compare differences of rows between random points with those of the cut graph.

    Parameters
    ----------
    differences : callable
        ``f(proposed, current, *block)``, nats.
    at : ModelAt
        The split log-density, its variables, and the first point of comparison.
    verified : Verified
        The cut graph in NumPy, from `verify`.
    rng : numpy.random.Generator
        Source of the other points, around the first one, and of the rows.

    Returns
    -------
    bool
        Whether the numbers agree.

    Notes
    -----
    Where the cut graph is not finite for some row, it is enough that some difference is not: one
    failed check of parameters is a failure of all rows there.

    Formulas such as ``1 - sigmoid(31)`` have few digits. What rounding does to the cut graph is
    measured where numbers differ, and tolerated.
    """
    n_rows = at.likelihood.n_in_model
    chosen = rng.integers(0, n_rows, min(_MOST_ROWS, n_rows))
    values, raveled = _points(at, verified, chosen, rng)
    expected = [verified.rows(v, chosen) for v in values]
    block = [array[chosen] for array in at.likelihood.arrays]
    for k in range(1, _POINTS):
        found = differences(raveled[k], raveled[k - 1], *block)
        if not _agree(found, expected[k], expected[k - 1]):
            allowed = _SAFETY * sum(verified.rounding(v, chosen) for v in values[k - 1 : k + 1])
            if not _agree(found, expected[k], expected[k - 1], allowed):
                return False
    return True


def row_free_difference_agrees(
    difference: Callable[..., float], at: ModelAt, verified: Verified, rng: np.random.Generator
) -> bool:
    """Compare differences of the row-free part between random points with those of its graph.

    Parameters
    ----------
    difference : callable
        ``f(proposed, current)``, nats.
    at, verified, rng
        As in `differences_agree`.

    Returns
    -------
    bool
        Whether the numbers agree.
    """
    values, raveled = _points(at, verified, np.zeros(0, dtype=np.int64), rng)
    expected = [np.asarray(verified.exact(*v)) for v in values]
    return all(
        _agree(np.asarray(difference(raveled[k], raveled[k - 1])), expected[k], expected[k - 1])
        for k in range(1, _POINTS)
    )


def _points(
    at: ModelAt, verified: Verified, chosen: NDArray[np.int64], rng: np.random.Generator
) -> tuple[list[list[NDArray]], list[NDArray[np.float64]]]:
    """Values of the value variables at the point and nearby, and the raveled vectors."""
    variables = at.likelihood.value_vars
    start = [np.asarray(at.point[v.name], dtype=v.dtype) for v in variables]
    nearby = (finite_nearby(verified.rows, start, chosen, rng) for _ in range(_POINTS - 1))
    values = [start, *nearby]
    points = [{v.name: x for v, x in zip(variables, each, strict=True)} for each in values]
    return values, [at._replace(point=p).raveled.astype(np.float64) for p in points]


def _agree(found: NDArray, new: NDArray, old: NDArray, more: ArrayLike = 0.0) -> bool:
    tolerance = _TOLERANCE[str(new.dtype)]
    new, old = new.astype(np.float64), old.astype(np.float64)
    if not (np.isfinite(new).all() and np.isfinite(old).all()):
        return not np.isfinite(found).all()
    allowed = tolerance * (1 + np.abs(new) + np.abs(old)) + more
    return bool(np.all(np.abs(found - (new - old)) <= allowed))
