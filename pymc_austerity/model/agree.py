"""The numerical guard of faster ways to evaluate rows: do they give the cut graph's numbers?"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.row_likelihood import RowLikelihood
from pymc_austerity.model.verify import Verified, finite_nearby

_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}
"""Error of a difference, relative to one plus the log-densities; by precision of the model."""

_SAFETY = 10.0


def differences_agree(
    differences: Callable[..., NDArray],
    split: RowLikelihood,
    verified: Verified,
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
    max_rows: int = 1_000,
) -> bool:
    """Compare differences of rows between random points with those of the cut graph.

    Parameters
    ----------
    differences : callable
        ``f(proposed, current, *block)``, nats.
    split : RowLikelihood
        The split log-density.
    verified : Verified
        The cut graph in NumPy, from `verify`.
    variables : sequence of variables
        All value variables, in the order in which a point is raveled.
    point : mapping of str to array
        Their values: the first point of comparison.
    rng : numpy.random.Generator
        Source of the other points, around the first one, and of the rows.
    n_points, max_rows : int
        Points, and rows at each of them.

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
    rows, rounding = verified.rows, verified.rounding
    start = [np.asarray(point[v.name], dtype=v.dtype) for v in split.value_vars]
    chosen = rng.integers(0, split.n_in_model, min(max_rows, split.n_in_model))
    nearby = (finite_nearby(rows, start, chosen, rng) for _ in range(n_points - 1))
    values = [start, *nearby]
    raveled = [_raveled(v, split.value_vars, variables) for v in values]
    expected = [rows(v, chosen) for v in values]
    block = [leaf.array[chosen] for leaf in split.leaves]
    for k in range(1, n_points):
        found = differences(raveled[k], raveled[k - 1], *block)
        if not _agree(found, expected[k], expected[k - 1]):
            allowed = _SAFETY * sum(rounding(v, chosen) for v in values[k - 1 : k + 1])
            if not _agree(found, expected[k], expected[k - 1], allowed):
                return False
    return True


def row_free_difference_agrees(
    difference: Callable[..., float],
    split: RowLikelihood,
    verified: Verified,
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
) -> bool:
    """Compare differences of the row-free part between random points with those of its graph.

    Parameters
    ----------
    difference : callable
        ``f(proposed, current)``, nats.
    verified : Verified
        From `verify`.
    split, variables, point, rng, n_points
        As in `differences_agree`.

    Returns
    -------
    bool
        Whether the numbers agree.
    """
    start = [np.asarray(point[v.name], dtype=v.dtype) for v in split.value_vars]
    no_rows = np.zeros(0, dtype=np.int64)
    nearby = (finite_nearby(verified.rows, start, no_rows, rng) for _ in range(n_points - 1))
    values = [start, *nearby]
    raveled = [_raveled(v, split.value_vars, variables) for v in values]
    expected = [np.asarray(verified.exact(*v)) for v in values]
    return all(
        _agree(np.asarray(difference(raveled[k], raveled[k - 1])), expected[k], expected[k - 1])
        for k in range(1, n_points)
    )


def _raveled(
    values: Sequence[NDArray], names: Sequence[Variable], variables: Sequence[Variable]
) -> NDArray[np.float64]:
    by_variable = dict(zip(names, values, strict=True))
    return np.concatenate([np.ravel(by_variable[v]).astype(np.float64) for v in variables])


def _agree(found: NDArray, new: NDArray, old: NDArray, more: ArrayLike = 0.0) -> bool:
    tolerance = _TOLERANCE[str(new.dtype)]
    new, old = new.astype(np.float64), old.astype(np.float64)
    if not (np.isfinite(new).all() and np.isfinite(old).all()):
        return not np.isfinite(found).all()
    allowed = tolerance * (1 + np.abs(new) + np.abs(old)) + more
    return bool(np.all(np.abs(found - (new - old)) <= allowed))
