"""A starting point at which the log-density is finite, or a sentence that says why it is not."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError
from pymc_austerity.model.row_likelihood import RowLeaf, RowLikelihood

__all__ = ["refuse_infinite_start"]

_CHUNK = 16_384


def refuse_infinite_start(
    split: RowLikelihood,
    rows: Callable[[list[NDArray], NDArray[np.int64]], NDArray],
    exact: Callable[..., NDArray],
    start: list[NDArray],
    rng: np.random.Generator,
    max_rows: int,
) -> None:
    """Refuse a start of probability zero, and data that make the log-likelihood NaN.

    Beyond `max_rows` rows, the log-likelihood is evaluated at random rows and at suspicious ones:
    those with NaN, infinite or extreme values in the data.

    Raises
    ------
    DataError
        Names the variable, how many rows are concerned, and what to do.
    """
    looked_at = np.arange(split.n_in_model)
    if split.n_in_model > max_rows:
        at_random = rng.choice(split.n_in_model, size=max_rows, replace=False)
        looked_at = np.unique(np.concatenate([at_random, *map(_suspicious, split.leaves)]))
    bad = looked_at[~np.isfinite(rows(start, looked_at))]
    if bad.size:
        raise DataError(_about_rows(split, bad, len(looked_at)))
    if not np.isfinite(exact(*start)):
        point = dict(zip((v.name for v in split.value_vars), start, strict=True))
        raise DataError(_about_exact_part(split, point))


def _chunks(array: NDArray) -> list[tuple[int, NDArray]]:
    return [(first, array[first : first + _CHUNK]) for first in range(0, len(array), _CHUNK)]


def _not_finite(leaf: RowLeaf) -> NDArray[np.int64]:
    """Rows of the user's data with NaN or infinite values."""
    if leaf.is_computed or leaf.array.dtype.kind != "f":
        return np.empty(0, dtype=np.int64)
    return np.concatenate(
        [
            first + np.flatnonzero(~np.isfinite(chunk.reshape(len(chunk), -1)).all(axis=1))
            for first, chunk in _chunks(leaf.array)
        ]
    )


def _suspicious(leaf: RowLeaf) -> NDArray[np.int64]:
    """Rows that hold the smallest or largest value of a column, and some that are not finite."""
    # In chunks, because NumPy would copy the array to look along its columns.
    extreme = np.concatenate([first + _extreme_rows(chunk) for first, chunk in _chunks(leaf.array)])
    extreme = extreme[_extreme_rows(leaf.array[extreme])]
    return np.concatenate([extreme, _not_finite(leaf)[:_CHUNK]])


def _extreme_rows(array: NDArray) -> NDArray[np.int64]:
    columns = array.reshape(len(array), -1)
    return np.unique(np.concatenate([columns.argmin(axis=0), columns.argmax(axis=0)]))


def _about_rows(split: RowLikelihood, bad: NDArray[np.int64], n_looked_at: int) -> str:
    names = ", ".join(map(repr, split.subsampled))
    of_all = f"{split.n_in_model:,} rows"
    if n_looked_at < split.n_in_model:
        of_all = f"the {n_looked_at:,} rows looked at"
    beginning = (
        f"the log-likelihood of {names} is not finite at the starting point in {bad.size:,} of "
        f"{of_all}"
    )
    for leaf in split.leaves:
        # A condition on all rows, such as PyMC's on parameters, fails in all of them for one.
        causes = np.intersect1d(_not_finite(leaf), bad)
        if causes.size:
            name = leaf.placeholder.name
            what = "an array without a name" if name == "data" else repr(name)
            return (
                f"{beginning}, because {what} holds NaN or infinite values in {causes.size:,} of "
                f"them, the first in row {causes[0]:,}: leave these rows out, or impute what is "
                "missing before building the model."
            )
    return (
        f"{beginning}, the first of them row {bad[0]:,}: choose another start, as in "
        "pm.Normal(..., initval=1.0), or look for missing data and observed values outside of the "
        "support of their distribution."
    )


def _about_exact_part(split: RowLikelihood, point: dict[str, NDArray]) -> str:
    names = {term.name for term in split.evaluated_in_full}
    log_densities = split.model.point_logps(point)
    bad = [name for name, value in log_densities.items() if name in names and ~np.isfinite(value)]
    return (
        f"the log-density of {', '.join(map(repr, bad)) or 'the priors'} is not finite at the "
        "starting point: choose another one, as in pm.Normal(..., initval=1.0), or look for values "
        "outside of the support of its distribution."
    )
