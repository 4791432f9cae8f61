"""The numerical guard: the cut graph must give the numbers of the model itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import ArrayLike, NDArray

from pymc_austerity._pymc import TensorType, clone_replace
from pymc_austerity.errors import DataError, NotRowwiseError, SettingError
from pymc_austerity.model.compiling import NUMPY_MODE, AnyThread, rounded_otherwise
from pymc_austerity.model.cut import RowLeaf, array_of
from pymc_austerity.model.cut.known import jittered
from pymc_austerity.model.rewritten import log_density_on_full_data
from pymc_austerity.model.row_likelihood import ModelAt, RowLikelihood

# A failed check of parameters gives -inf, and slices are moved towards the data.
WITHOUT_CHECKS = NUMPY_MODE.including("local_remove_check_parameter")

_N_WINDOWS = 4
_ADD_UP_TO = 100_000
_CHUNK = 16_384
_JITTER = 0.3
_RETRIES = 6
_ROUNDED = 4

_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}
"""Error of a difference, relative to one plus the log-densities; by precision of the model."""
_SAFETY = 10.0
_POINTS, _MOST_ROWS = 3, 1_000
_MOST_COMPARED = 2_000
"""Rows whose numbers are compared with those of the model."""


class Verified:
    """Parts of the log-density in NumPy, operation by operation, which `verify` compares.

    Parameters
    ----------
    split : RowLikelihood
        The split log-density.

    Attributes
    ----------
    exact : callable
        ``f(*values)``: the row-free part, nats, given values of all value variables.
    """

    def __init__(self, split: RowLikelihood) -> None:
        self.split = split
        self._by_numpy = _compiled(split, split.placeholders, split.rows, NUMPY_MODE)
        self._rows = AnyThread(self._by_numpy)
        self.exact = _compiled(split, [], split.row_free, NUMPY_MODE)

    def rows(self, values: list[NDArray], chosen: NDArray[np.int64]) -> NDArray:
        """Log-likelihoods of some rows by the cut graph, nats."""
        return self.on_block(values, [array[chosen] for array in self.split.arrays])

    def on_block(self, values: list[NDArray], block: Sequence[NDArray]) -> NDArray:
        """The same of rows given by their leaves."""
        return self._rows(*values, *block)

    def rounding(self, values: list[NDArray], chosen: NDArray[np.int64]) -> NDArray:
        """By how much log-likelihoods of rows change where operations are rounded otherwise."""
        arguments = [*values, *(array[chosen] for array in self.split.arrays)]
        return _rounding(self._by_numpy, arguments)

    def values_at(self, point: Mapping[str, NDArray]) -> list[NDArray]:
        """Values of all value variables at a point."""
        return [np.asarray(point[v.name], dtype=v.dtype) for v in self.split.value_vars]

    def points(
        self, start: list[NDArray], n: int, chosen: NDArray, rng: np.random.Generator
    ) -> Iterator[list[NDArray]]:
        """A point, and others nearby at which some rows are finite."""
        yield start
        for _ in range(n - 1):
            yield finite_nearby(lambda values: [self.rows(values, chosen)], start, rng)


def _compiled(split: RowLikelihood, more: list, output: Any, mode: Any) -> Callable[..., NDArray]:
    inputs = [*split.value_vars, *more]
    if mode is WITHOUT_CHECKS:
        return pytensor.function(inputs, output, mode=mode, on_unused_input="ignore")
    with split.model:  # so that its check_bounds is honored
        return pm.compile(inputs, output, mode=mode, on_unused_input="ignore")


def refuse_faulty(model: pm.Model) -> None:
    """Refuse a model whose log-density cannot be evaluated, as where an index is out of range.

    It is evaluated in Python: what numba compiles does not check indices.

    Raises
    ------
    DataError
        Says what PyTensor finds.
    """
    values, point = model.value_vars, model.initial_point()
    its: dict[str, Any] = {"mode": WITHOUT_CHECKS, "on_unused_input": "ignore"}
    try:
        function = pytensor.function(values, model.logp(), **its)
        function(*(point[variable.name] for variable in values))
    except (AssertionError, IndexError, ValueError) as error:
        first = str(error).partition("\n")[0].rstrip(".")
        raise DataError(
            f"the log-density cannot be evaluated where chains start ({first}): mend the index or "
            "the shape of the term for which model.point_logps() fails."
        ) from error


@contextmanager
def faults_named(model: pm.Model) -> Iterator[None]:
    """Raise the errors of `refuse_faulty` in the place of others."""
    try:
        yield
    except (DataError, NotRowwiseError, SettingError):
        raise
    except (AssertionError, IndexError, ValueError):
        refuse_faulty(model)
        raise


def finite_nearby(
    evaluate: Callable[[list[NDArray]], Iterable[NDArray]],
    start: list[NDArray],
    rng: np.random.Generator,
) -> list[NDArray]:
    """Find a random point at which some results are finite, the start if there is none."""
    scale = _JITTER
    for _ in range(_RETRIES):
        candidate = jittered(start, scale, rng)
        if all(np.isfinite(found).all() for found in evaluate(candidate)):
            return candidate
        scale /= 2.0
    return start


def _rounding(function: Any, arguments: Sequence[Any]) -> NDArray:
    """By how much results change where operations are rounded otherwise."""
    rng, usual = np.random.default_rng(3), function(*arguments)
    others = [rounded_otherwise(function, rng)(*arguments)[0] for _ in range(_ROUNDED)]
    changes = [np.nan_to_num(abs(other - usual), posinf=0.0) for other in others]
    return np.asarray(np.max(changes, axis=0))


def are_same(found: NDArray, expected: NDArray, allowed: NDArray | float = 0.0) -> bool:
    """Whether log-densities differ by no more than rounding explains, or than is allowed."""
    tolerance = tolerance_of(expected)
    if found.shape != expected.shape:
        return False
    with np.errstate(invalid="ignore"):  # infinite minus infinite
        are_near = np.abs(found - expected) <= allowed
    are_close = np.isclose(found, expected, rtol=tolerance, atol=tolerance)
    return bool((are_close | are_near).all())


def tolerance_of(log_density: NDArray) -> float:
    """Relative error of log-densities that rounding explains."""
    return 1e-6 if log_density.dtype == np.float64 else 1e-3


def verify(
    row_likelihood: RowLikelihood,
    point: Mapping[str, NDArray],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
    max_rows: int = _MOST_COMPARED,
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
    verified = Verified(row_likelihood)
    start = verified.values_at(point)
    _refuse_infinite_start(verified, start, rng, max_rows)
    windows = _rows_to_compare(row_likelihood.n_in_model, max_rows, rng)
    rows = np.concatenate(windows)
    first, last = pt.lscalar("first"), pt.lscalar("last")
    window = _compiled(
        row_likelihood, [first, last], row_likelihood.full[first:last], WITHOUT_CHECKS
    )
    for values in verified.points(start, n_points, rows, rng):
        of_windows = [window(*values, np.asarray(w[0]), np.asarray(w[-1] + 1)) for w in windows]
        expected = np.concatenate(of_windows)
        for chosen in _subsets_of(len(expected), rng):
            found = verified.rows(values, rows[chosen])
            if are_same(found, expected[chosen]):
                continue
            rounding = [_rounding(window, [*values, w[0], w[-1] + 1]) for w in windows]
            allowed = np.concatenate(rounding)[chosen]
            allowed += verified.rounding(values, rows[chosen])
            if not are_same(found, expected[chosen], _SAFETY * allowed):
                raise NotRowwiseError(
                    f"the log-likelihood of {_names(verified)} gives other numbers on a "
                    "mini-batch than on all the data, which means that rows depend on each other: "
                    "use NUTS for this model, or rewrite it so that each row needs no more than "
                    "its own data and the parameters."
                )
    if row_likelihood.n_in_model <= _ADD_UP_TO:
        _refuse_wrong_sum(verified, start)
    return verified


def verify_centered(
    row_likelihood: RowLikelihood,
    before: Verified,
    pairs: Sequence[tuple[list[NDArray], list[NDArray]]],
    *,
    rng: np.random.Generator,
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
    rng : numpy.random.Generator
        Chooses the rows.

    Returns
    -------
    Verified or None
        None if the numbers differ.
    """
    verified = Verified(row_likelihood)
    chosen = np.concatenate(_rows_to_compare(row_likelihood.n_in_model, _MOST_COMPARED, rng))
    agree = (are_same(verified.rows(b, chosen), before.rows(a, chosen)) for a, b in pairs)
    return verified if all(agree) else None


def _rows_to_compare(
    n_rows: int, max_rows: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Consecutive rows at several places."""
    if n_rows <= max_rows:
        return [np.arange(n_rows)]
    length = max(max_rows // _N_WINDOWS, 1)
    firsts = rng.integers(0, n_rows - length, size=_N_WINDOWS, endpoint=True)
    return [np.arange(first, first + length) for first in firsts]


def _subsets_of(n: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield sets of rows: shuffled and of uneven sizes, with repetitions, and a single one."""
    cuts = np.sort(rng.choice(np.arange(1, n), size=min(5, n - 1), replace=False))
    yield from np.split(rng.permutation(n), cuts)
    yield rng.integers(0, n, size=4)
    yield np.zeros(1, dtype=np.int64)


def _refuse_wrong_sum(verified: Verified, values: list[NDArray]) -> None:
    split = verified.split
    every = np.arange(split.n_in_model)
    terms = verified.rows(values, every).astype(np.float64)
    parts = float(verified.exact(*values)) + terms.sum()
    whole = _compiled(split, [], log_density_on_full_data(split.model), NUMPY_MODE)
    total = whole(*values)
    allowed, error = tolerance_of(total) * (1.0 + abs(parts) + np.abs(terms).sum()), parts - total
    if abs(error) <= allowed:
        return
    rounding = verified.rounding(values, every).sum() + _rounding(whole, values)
    if not abs(error) <= _SAFETY * rounding:
        raise NotRowwiseError(
            f"the rows of {_names(verified)} and the other terms do not add up to the log-density "
            f"of the model ({parts:.8g} instead of {float(total):.8g}): use NUTS for this model."
        )


def _names(verified: Verified) -> str:
    return ", ".join(map(repr, verified.split.subsampled))


def _refuse_infinite_start(
    verified: Verified, start: list[NDArray], rng: np.random.Generator, max_rows: int
) -> None:
    """Refuse a start of probability zero, and data that make the log-likelihood NaN.

    Beyond `max_rows` rows, the log-likelihood is evaluated at random rows and at suspicious ones:
    those with NaN, infinite or extreme values in the data.

    Raises
    ------
    DataError
        Names the variable, how many rows are concerned, and what to do.
    """
    split, looked_at = verified.split, np.arange(verified.split.n_in_model)
    if split.n_in_model > max_rows:
        at_random = rng.choice(split.n_in_model, size=max_rows, replace=False)
        looked_at = np.unique(np.concatenate([at_random, *map(_suspicious, split.leaves)]))
    bad = looked_at[~np.isfinite(verified.rows(start, looked_at))]
    if bad.size:
        raise DataError(_about_rows(verified, bad, len(looked_at)))
    if not np.isfinite(verified.exact(*start)):
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


def _about_rows(verified: Verified, bad: NDArray[np.int64], n_looked_at: int) -> str:
    split = verified.split
    of_all = f"{split.n_in_model:,} rows"
    if n_looked_at < split.n_in_model:
        of_all = f"the {n_looked_at:,} rows looked at"
    beginning = (
        f"the log-likelihood of {_names(verified)} is not finite at the starting point in "
        f"{bad.size:,} of {of_all}"
    )
    for leaf in split.leaves:
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
    start, every = verified.values_at(point), np.arange(split.n_in_model)
    points = list(verified.points(start, _POINTS, every, rng))
    for window in windows:
        block = split.recipes(window)
        for values in points:
            with np.errstate(all="ignore"):
                expected = function(*values, *[window[name] for name in split.examples.variables])
            usable = np.flatnonzero(np.isfinite(expected))
            if usable.size < 2:
                continue
            for chosen in (usable[subset] for subset in _subsets_of(usable.size, rng)):
                found = verified.on_block(values, [leaf[chosen] for leaf in block])
                if not are_same(found, expected[chosen]):
                    raise NotRowwiseError(
                        f"the log-likelihood of {_names(verified)} gives other numbers on rows of "
                        "the sources than the model does with these rows in the place of its "
                        "example: use NUTS for this model."
                    )


# ------------------------------------------------------------------ faster ways to evaluate


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
    Where the cut graph is not finite for some row, it is enough that some difference is not.

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
    values = list(verified.points(verified.values_at(at.point), _POINTS, chosen, rng))
    names = [v.name for v in at.likelihood.value_vars]
    points = [dict(zip(names, each, strict=True)) for each in values]
    return values, [at._replace(point=p).raveled.astype(np.float64) for p in points]


def _agree(found: NDArray, new: NDArray, old: NDArray, more: ArrayLike = 0.0) -> bool:
    tolerance = _TOLERANCE[str(new.dtype)]
    new, old = new.astype(np.float64), old.astype(np.float64)
    if not (np.isfinite(new).all() and np.isfinite(old).all()):
        return not np.isfinite(found).all()
    allowed = tolerance * (1 + np.abs(new) + np.abs(old)) + more
    return bool(np.all(np.abs(found - (new - old)) <= allowed))
