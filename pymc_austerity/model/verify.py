"""The numerical guard: the cut graph must give the numbers of the model itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import TensorType, clone_replace
from pymc_austerity.errors import DataError, NotRowwiseError
from pymc_austerity.model.compiling import NUMPY_MODE, AnyThread, rounded_otherwise
from pymc_austerity.model.cut import RowLeaf, array_of
from pymc_austerity.model.cut.known import jittered
from pymc_austerity.model.rewritten import log_density_on_full_data
from pymc_austerity.model.row_likelihood import RowLikelihood

RowFunction: TypeAlias = Callable[[list[NDArray], NDArray[np.int64]], NDArray]
"""``f(values, rows)``: log-likelihoods of some rows, given values of all value variables."""

BlockFunction: TypeAlias = Callable[[list[NDArray], Sequence[NDArray]], NDArray]
"""``f(values, block)``: the same of rows given by their leaves."""


class Verified(NamedTuple):
    """Parts of the log-density in NumPy, operation by operation.

    Attributes
    ----------
    rows : callable
        ``f(values, rows)``: log-likelihoods of some rows by the cut graph, nats.
    exact : callable
        ``f(*values)``: the row-free part, nats.
    on_block : callable
        ``f(values, block)``: log-likelihoods of rows given by their leaves, nats.
    rounding : callable
        ``f(values, rows)``: by how much rounding changes log-likelihoods of rows, nats.
    """

    rows: RowFunction
    exact: Callable[..., NDArray]
    on_block: BlockFunction
    rounding: RowFunction


# A failed check of parameters gives -inf, and slices are moved towards the data.
WITHOUT_CHECKS = NUMPY_MODE.including("local_remove_check_parameter")

_N_WINDOWS = 4
_ADD_UP_TO = 100_000
_JITTER = 0.3
_RETRIES = 6
_ROUNDED = 4


def verify(
    row_likelihood: RowLikelihood,
    point: Mapping[str, NDArray],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
    max_rows: int = 2_000,
) -> Verified:
    """Compare the cut graph with the model's own log-density at several points.

    Shuffled, repeated and uneven sets of rows must have the log-likelihoods that the untouched
    graph gives them; up to 100,000 rows, the row-free part and all rows must add up to the model's
    log-density.

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
        Rows compared at each point, in four windows at random places if there are more.

    Returns
    -------
    Verified
        The cut graph and the row-free part, operation by operation in NumPy.

    Raises
    ------
    NotRowwiseError
        The numbers differ.
    DataError
        The log-density is not finite at the first point.

    Notes
    -----
    The reference is a window ``full[start:stop]`` of the untouched graph on all data. Where
    PyTensor can rewrite a window of the result to a window of the data, it reads that window only;
    elsewhere it evaluates all rows. The reference is therefore correct in either case,
    independent of the rules that it verifies, and takes milliseconds for most models
    of a million rows.
    """
    functions = _Functions(row_likelihood)
    start = [np.asarray(point[v.name], dtype=v.dtype) for v in row_likelihood.value_vars]
    refuse_infinite_start(row_likelihood, functions.rows, functions.exact, start, rng, max_rows)
    windows = _rows_to_compare(row_likelihood.n_in_model, max_rows, rng)
    _compare(functions, start, windows, rng)
    for _ in range(n_points - 1):
        nearby = finite_nearby(functions.rows, start, np.concatenate(windows), rng)
        _compare(functions, nearby, windows, rng)
    if row_likelihood.n_in_model <= _ADD_UP_TO:
        _refuse_wrong_sum(functions, start)
    return functions.verified


def verify_centered(
    row_likelihood: RowLikelihood,
    before: Verified,
    pairs: Sequence[tuple[list[NDArray], list[NDArray]]],
    *,
    rng: np.random.Generator,
    max_rows: int = 2_000,
) -> Verified | None:
    """Compare rows in terms of other variables with the same rows in terms of the user's.

    Parameters
    ----------
    row_likelihood : RowLikelihood
        The log-density in terms of the other variables, as from `centered`.
    before : Verified
        The same in terms of the user's.
    pairs : sequence of pairs of lists of arrays
        Values of the user's value variables, and of the others at the same point.
    rng, max_rows
        As for `verify`.

    Returns
    -------
    Verified or None
        None if the numbers differ.
    """
    functions = _Functions(row_likelihood)
    chosen = np.concatenate(_rows_to_compare(row_likelihood.n_in_model, max_rows, rng))
    for old, new in pairs:
        expected, found = before.rows(old, chosen), functions.rows(new, chosen)
        tolerance = tolerance_of(expected)
        if not np.allclose(found, expected, rtol=tolerance, atol=tolerance):
            return None
    return functions.verified


class _Functions:
    """What is compared, compiled."""

    def __init__(self, split: RowLikelihood) -> None:
        self.split = split
        placeholders = [leaf.placeholder for leaf in split.leaves]
        first, last = pt.lscalar("first"), pt.lscalar("last")
        self._window = _compiled(split, [first, last], split.full[first:last], WITHOUT_CHECKS)
        self._by_numpy = _compiled(split, placeholders, split.rows, NUMPY_MODE)
        self._rows = AnyThread(self._by_numpy)
        self.exact = _compiled(split, [], split.row_free, NUMPY_MODE)

    def window(self, point: list[NDArray], first: int, last: int) -> NDArray:
        """Log-likelihoods of consecutive rows by the untouched graph."""
        return self._window(*point, np.asarray(first), np.asarray(last))

    def rows(self, point: list[NDArray], chosen: NDArray[np.int64]) -> NDArray:
        """Log-likelihoods of any rows by the cut graph."""
        return self._rows(*point, *[leaf.array[chosen] for leaf in self.split.leaves])

    def rounding(self, point: list[NDArray], chosen: NDArray[np.int64]) -> NDArray:
        """By how much log-likelihoods change where results of operations are rounded otherwise."""
        arguments = [*point, *[leaf.array[chosen] for leaf in self.split.leaves]]
        rng, usual = np.random.default_rng(3), self._rows(*arguments)
        others = [rounded_otherwise(self._by_numpy, rng)(*arguments)[0] for _ in range(_ROUNDED)]
        return np.max([np.nan_to_num(abs(other - usual), posinf=0.0) for other in others], axis=0)

    @property
    def verified(self) -> Verified:
        """The parts that were compared with the model."""
        return Verified(self.rows, self.exact, self.on_block, self.rounding)

    def on_block(self, point: list[NDArray], block: Sequence[NDArray]) -> NDArray:
        """The same of rows given by their leaves."""
        return self._rows(*point, *block)


def _compiled(split: RowLikelihood, more: list, output: Any, mode: Any) -> Callable[..., NDArray]:
    inputs = [*split.value_vars, *more]
    if mode is WITHOUT_CHECKS:
        return pytensor.function(inputs, output, mode=mode, on_unused_input="ignore")
    with split.model:  # so that its check_bounds is honored
        return pm.compile(inputs, output, mode=mode, on_unused_input="ignore")


def _rows_to_compare(
    n_rows: int, max_rows: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Consecutive rows at several places."""
    if n_rows <= max_rows:
        return [np.arange(n_rows)]
    length = max(max_rows // _N_WINDOWS, 1)
    firsts = rng.integers(0, n_rows - length, size=_N_WINDOWS, endpoint=True)
    return [np.arange(first, first + length) for first in firsts]


def finite_nearby(
    rows: RowFunction, start: list[NDArray], chosen: NDArray[np.int64], rng: np.random.Generator
) -> list[NDArray]:
    """Find a random point at which the log-likelihoods are finite, the start if there is none."""
    scale = _JITTER
    for _ in range(_RETRIES):
        candidate = jittered(start, scale, rng)
        if np.isfinite(rows(candidate, chosen)).all():
            return candidate
        scale /= 2.0
    return start


def subsets_of(n: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield sets of rows: shuffled and of uneven sizes, with repetitions, and a single one."""
    cuts = np.sort(rng.choice(np.arange(1, n), size=min(5, n - 1), replace=False))
    yield from np.split(rng.permutation(n), cuts)
    yield rng.integers(0, n, size=4)
    yield np.zeros(1, dtype=np.int64)


def tolerance_of(log_density: NDArray) -> float:
    """Relative error of log-densities that rounding explains."""
    return 1e-6 if log_density.dtype == np.float64 else 1e-3


def _compare(
    functions: _Functions,
    point: list[NDArray],
    windows: list[NDArray[np.int64]],
    rng: np.random.Generator,
) -> None:
    expected = np.concatenate([functions.window(point, w[0], w[-1] + 1) for w in windows])
    rows, tolerance = np.concatenate(windows), tolerance_of(expected)
    for chosen in subsets_of(len(expected), rng):
        found = functions.rows(point, rows[chosen])
        if found.shape != chosen.shape or not np.allclose(
            found, expected[chosen], rtol=tolerance, atol=tolerance
        ):
            raise NotRowwiseError(
                f"the log-likelihood of {_names(functions)} gives other numbers on a mini-batch "
                "than on all the data, which means that rows depend on each other: use NUTS for "
                "this model, or rewrite it so that each row needs no more than its own data and "
                "the parameters."
            )


def _refuse_wrong_sum(functions: _Functions, point: list[NDArray]) -> None:
    split = functions.split
    terms = functions.rows(point, np.arange(split.n_in_model)).astype(np.float64)
    parts = float(functions.exact(*point)) + terms.sum()
    log_density = log_density_on_full_data(split.model)
    total = _compiled(split, [], log_density, NUMPY_MODE)(*point)
    allowed = tolerance_of(total) * (1.0 + abs(parts) + np.abs(terms).sum())
    if not abs(parts - float(total)) <= allowed:
        raise NotRowwiseError(
            f"the rows of {_names(functions)} and the other terms do not add up to the log-density "
            f"of the model ({parts:.8g} instead of {float(total):.8g}): use NUTS for this model."
        )


def _names(functions: _Functions) -> str:
    return ", ".join(map(repr, functions.split.subsampled))


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
        raise DataError(_about_row_free_part(split, point))


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


def _about_row_free_part(split: RowLikelihood, point: dict[str, NDArray]) -> str:
    names = {term.name for term in split.evaluated_in_full}
    log_densities = split.model.point_logps(point)
    bad = [name for name, value in log_densities.items() if name in names and ~np.isfinite(value)]
    return (
        f"the log-density of {', '.join(map(repr, bad)) or 'the priors'} is not finite at the "
        "starting point: choose another one, as in pm.Normal(..., initval=1.0), or look for values "
        "outside of the support of its distribution."
    )


def verify_examples(
    split: RowLikelihood,
    verified: Verified,
    point: Mapping[str, NDArray],
    windows: Iterable[Mapping[str, NDArray]],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
) -> None:
    """Put other rows in the place of the example, and compare the model with its cut graph.

    What the cut concluded from the example, and should not have, shows in rows that differ.

    Parameters
    ----------
    split : RowLikelihood
        With recipes for its leaves.
    verified : Verified
        Its cut graph, which agrees with the model on the example.
    point : dict of str to array
        Values of the model's value variables: the first point of comparison.
    windows : iterable of dict of str to array
        Rows of the named data, each time as many as the example has.
    rng : numpy.random.Generator
        Source of the other points, and of the order of the rows.
    n_points : int
        Points to compare at.

    Raises
    ------
    NotRowwiseError
        The numbers differ.
    """
    assert split.recipes is not None
    inputs = {}
    for variable in split.examples.variables.values():
        array = array_of(variable)
        inputs[variable] = TensorType(array.dtype, shape=array.shape)()
    (full,) = clone_replace([split.full], inputs, rebuild_strict=False)
    function = pytensor.function(
        [*split.value_vars, *inputs.values()], full, mode=WITHOUT_CHECKS, on_unused_input="ignore"
    )
    start = [np.asarray(point[v.name], dtype=v.dtype) for v in split.value_vars]
    every = np.arange(split.n_in_model)
    nearby = (finite_nearby(verified.rows, start, every, rng) for _ in range(n_points - 1))
    points = [start, *nearby]
    for window in windows:
        block = split.recipes(window)
        for values in points:
            with np.errstate(all="ignore"):
                expected = function(*values, *[window[name] for name in split.examples.variables])
            usable = np.flatnonzero(np.isfinite(expected))
            if usable.size < 2:
                continue
            tolerance = tolerance_of(expected)
            for chosen in (usable[subset] for subset in subsets_of(usable.size, rng)):
                found = verified.on_block(values, [leaf[chosen] for leaf in block])
                if not np.allclose(found, expected[chosen], rtol=tolerance, atol=tolerance):
                    raise NotRowwiseError(
                        f"the log-likelihood of {', '.join(map(repr, split.subsampled))} gives "
                        "other numbers on rows of the sources than the model does with these "
                        "rows in the place of its example: use NUTS for this model."
                    )
