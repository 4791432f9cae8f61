"""The numerical guard: the cut graph must give the numbers of the model itself."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import Mode
from pymc_austerity.errors import DataError, NotRowwiseError
from pymc_austerity.likelihood.row_likelihood import RowLikelihood

__all__ = ["verify"]

# Rewritten, so that failed parameter checks give -inf, but not fused: every operation stays one
# call of NumPy, which frees its operands early and compiles nothing.
_MODE = Mode(linker="py", optimizer="fast_run").excluding("fusion")

_JITTER = 0.3
_RETRIES = 6


def verify(
    row_likelihood: RowLikelihood,
    point: Mapping[str, NDArray],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
    max_rows: int = 2_000,
) -> None:
    """Compare the cut graph with the model's own log-density at several points.

    Shuffled, repeated and uneven sets of rows must have the log-likelihoods that the untouched
    graph gives them, and the exact part and all rows must add up to the model's log-density.

    Parameters
    ----------
    row_likelihood : RowLikelihood
        What to verify.
    point : dict of str to array
        Values of the model's value variables: the first point of comparison.
    rng : numpy.random.Generator
        Source of the other points, around the first one, and of the rows.
    n_points : int
        Points to compare at. One is not enough: where all parameters start at zero, a cumulative
        sum looks as if it treated rows one by one.
    max_rows : int
        Rows compared at each point, at random if there are more.

    Raises
    ------
    NotRowwiseError
        The numbers differ.
    DataError
        The log-density is not finite at the first point.

    Notes
    -----
    The untouched graph is evaluated once at every point on all rows: whether it mixes rows can only
    be seen with all of them present. That takes the time and the memory of as many evaluations of
    ``model.logp()``, which ``pm.sample`` also needs for its first look at the starting point. The
    cut graph is evaluated on `max_rows` rows.
    """
    full = _compiled(row_likelihood, [row_likelihood.full, row_likelihood.exact,
                                      row_likelihood.log_density], [])
    rows = _compiled(
        row_likelihood, row_likelihood.rows, [leaf.placeholder for leaf in row_likelihood.leaves]
    )
    start = [np.asarray(point[v.name], dtype=v.dtype) for v in row_likelihood.value_vars]
    values = full(*start)
    _refuse_infinite_start(row_likelihood, point, values)
    _compare(row_likelihood, rows, start, values, rng, max_rows)
    for _ in range(n_points - 1):
        found = _finite_nearby(full, start, rng)
        if found is not None:
            _compare(row_likelihood, rows, *found, rng, max_rows)


def _compiled(split: RowLikelihood, outputs: Any, placeholders: list) -> Callable[..., Any]:
    with split.model:
        return pm.compile(
            [*split.value_vars, *placeholders], outputs, mode=_MODE, on_unused_input="ignore"
        )


def _finite_nearby(
    full: Callable[..., list[NDArray]], start: list[NDArray], rng: np.random.Generator
) -> tuple[list[NDArray], list[NDArray]] | None:
    """Find a random point at which the log-density is finite, and the values there."""
    scale = _JITTER
    for _ in range(_RETRIES):
        candidate = [
            (value + scale * rng.normal(size=value.shape)).astype(value.dtype)
            if value.dtype.kind == "f"
            else value
            for value in start
        ]
        values = full(*candidate)
        if all(np.isfinite(value).all() for value in values):
            return candidate, values
        scale /= 2.0
    return None


def _samples_of_rows(
    n_rows: int, max_rows: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yield sets of rows: shuffled and of uneven sizes, with repetitions, and a single one."""
    n = min(n_rows, max_rows)
    shuffled = rng.permutation(n) if n == n_rows else rng.choice(n_rows, size=n, replace=False)
    cuts = np.sort(rng.choice(np.arange(1, n), size=min(5, n - 1), replace=False))
    yield from np.split(shuffled, cuts)
    yield rng.integers(0, n_rows, size=4)
    yield np.zeros(1, dtype=np.int64)


def _compare(
    split: RowLikelihood,
    rows: Callable[..., NDArray],
    point: list[NDArray],
    values: list[NDArray],
    rng: np.random.Generator,
    max_rows: int,
) -> None:
    full, exact, total = values
    tolerance = 1e-6 if np.finfo(full.dtype).bits >= 64 else 1e-3
    names = ", ".join(map(repr, split.subsampled))
    for chosen in _samples_of_rows(split.n_rows, max_rows, rng):
        found = rows(*point, *[leaf.array[chosen] for leaf in split.leaves])
        if found.shape != chosen.shape or not np.allclose(
            found, full[chosen], rtol=tolerance, atol=tolerance
        ):
            raise NotRowwiseError(
                f"the log-likelihood of {names} gives other numbers on a mini-batch than on all "
                "the data, which means that rows depend on each other: use NUTS for this model, or "
                "rewrite it so that each row needs no more than its own data and the parameters."
            )
    sum_of_parts = float(exact) + full.sum(dtype=np.float64)
    scale = abs(float(exact)) + np.abs(full).sum(dtype=np.float64) + 1.0
    if abs(sum_of_parts - float(total)) > tolerance * scale:
        raise NotRowwiseError(
            f"the rows of {names} and the rest do not add up to the log-density of the model "
            f"({sum_of_parts:.8g} instead of {float(total):.8g}): use NUTS for this model, and "
            "please report it."
        )


# ------------------------------------------------------------------ data that cannot be used


def _refuse_infinite_start(
    split: RowLikelihood, point: Mapping[str, NDArray], values: list[NDArray]
) -> None:
    full, exact, _ = values
    bad_rows = ~np.isfinite(full)
    if bad_rows.any():
        raise DataError(_about_bad_rows(split, bad_rows))
    if not np.isfinite(exact):
        names = {term.name for term in split.evaluated_in_full}
        log_densities = split.model.point_logps(dict(point))
        bad = [n for n, value in log_densities.items() if n in names and not np.isfinite(value)]
        raise DataError(
            f"the log-density of {', '.join(map(repr, bad)) or 'the priors'} is not finite at the "
            "starting point: choose another one with initvals, or look for data or settings outside"
            " of the support of its distribution."
        )


def _about_bad_rows(split: RowLikelihood, bad_rows: NDArray[np.bool_]) -> str:
    names = ", ".join(map(repr, split.subsampled))
    how_many = f"{bad_rows.sum():,} of {split.n_rows:,} rows"
    for leaf in split.leaves:
        if leaf.array.dtype.kind != "f":
            continue
        array = leaf.array[bad_rows]
        n_bad = int((~np.isfinite(array)).reshape(len(array), -1).any(axis=1).sum())
        if n_bad:
            name = leaf.placeholder.name
            what = "data without a name" if name == "data" else repr(name)
            return (
                f"the log-likelihood of {names} is not finite for {how_many} because {what} has NaN "
                f"or infinite values in {n_bad:,} of them: leave these rows out, or impute what is "
                "missing before building the model."
            )
    return (
        f"the log-likelihood of {names} is not finite at the starting point for {how_many}: choose "
        "another start with initvals, or look for observed values outside of the support of their "
        "distribution."
    )
