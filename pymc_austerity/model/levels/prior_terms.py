"""Terms of the row-free part by the levels of a factor, and its derivatives for some entries."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import SharedVariable, Variable, ancestors, grad, stabilized
from pymc_austerity.model.compiling import compiled, evaluated
from pymc_austerity.model.cut import CannotCut, Known, static_data
from pymc_austerity.model.kernel.kernel import Kernel, kernel_of
from pymc_austerity.model.kernel.row_loops import RowDerivatives, row_derivatives_of
from pymc_austerity.model.predictors.find import find_predictors
from pymc_austerity.model.predictors.structure import Design, PointMap, design_function
from pymc_austerity.model.rewritten import inlined
from pymc_austerity.model.row_likelihood import ModelAt, RowLikelihood
from pymc_austerity.model.split import cut_terms, sum_over_others
from pymc_austerity.model.verify import finite_nearby

_SMALL_STEP = 1e-4
"""Of differences of gradients."""

_TINY = 1e-300
_POINTS = 2
"""Points besides the start at which levels are looked at."""


class NotByLevelError(ValueError):
    """A term of the row-free part is not a sum over levels; the message names the variables."""


@dataclass(frozen=True, eq=False)
class LevelsAsRows:
    r"""Terms of levels as rows are written: :math:`f_g(\eta_g)`, with :math:`\eta_g = A_g \theta`.

    Attributes
    ----------
    block : tuple of arrays
        Data of the levels.
    designs : sequence of Design
        Of the predictors.
    function : RowDerivatives
        Terms with their derivatives, from those by the r predictors that read entries of levels.
    multipliers : float array, shape (r, G, q)
        Multipliers of the entries of each level in these.
    given : int array
        Other entries that the terms read.
    kernel : Kernel or str
        Differences of the terms as a compiled loop, or why there is none.
    """

    block: tuple[NDArray, ...]
    designs: Sequence[Design]
    function: RowDerivatives
    multipliers: NDArray[np.float64]
    given: NDArray[np.int64]
    kernel: Kernel | str

    def terms(self, point: NDArray) -> NDArray[np.float64]:
        """From a raveled point to the terms, shape (G,), nats."""
        return self._at(point)[0]

    def derivatives(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradients, shape (G, q), and Hessians, shape (G, q, q), by the entries of each level."""
        _, gradients, hessians = self._at(point)
        return gradients, hessians

    @property
    def address(self) -> int:
        """Of all three in compiled code, a function of three addresses.

        Those of a point, of what it fills in (terms, gradients and Hessians, one after the other),
        and of `table`.
        """
        return self.function.address

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """Shapes and addresses of the arrays that the function at `address` reads."""
        numbers = [*self.multipliers.shape[1:]]
        numbers += [array.ctypes.data for array in (*self._predictors, self.multipliers)]
        for array in self.block:
            numbers += [array.ctypes.data, *array.shape]
        return np.array(numbers, dtype=np.int64)

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the sum of the terms between two points, nats."""
        assert isinstance(self.kernel, Kernel)
        return float(self.kernel(proposed, current, *self.block).sum())

    def _at(self, point: NDArray) -> tuple[NDArray[np.float64], ...]:
        _, n_levels, q = self.multipliers.shape
        out = np.empty(n_levels * (1 + q + q * q))
        exact = np.ascontiguousarray(point, dtype=np.float64)
        self.function.on_arrays(exact, out, self.table)
        gradients, hessians = out[n_levels : n_levels * (1 + q)], out[n_levels * (1 + q) :]
        return out[:n_levels], gradients.reshape(-1, q), hessians.reshape(-1, q, q)

    @cached_property
    def _predictors(self) -> tuple[NDArray, ...]:
        """Terms of all predictors, the k of all levels one after the other.

        Where the terms of each begin, shape (k G + 1,); the entries and coefficients of all terms;
        and offsets, shape (k G,).
        """
        pairs = [design.spelled_out() for design in self.designs]
        counts = np.concatenate([np.full(len(data), data.shape[1]) for _, data in pairs])
        own = (0.0 if design.offset is None else design.offset for design in self.designs)
        offsets = [np.broadcast_to(offset, self.multipliers.shape[1]) for offset in own]
        return (
            np.cumsum(np.concatenate([[0], counts]), dtype=np.int64),
            np.concatenate([entries.ravel() for entries, _ in pairs]),
            np.concatenate([data.ravel() for _, data in pairs]),
            np.concatenate(offsets, dtype=np.float64),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {name: value for name, value in self.__dict__.items() if name != "table"}


class LevelTerms(NamedTuple):
    """Terms of the row-free part that depend on each level of a factor.

    Attributes
    ----------
    terms : callable
        From a raveled point to a float array, shape (G,), nats.
    derivatives : callable
        From a raveled point to gradients, shape (G, q), and Hessians, shape (G, q, q), with respect
        to the entries of each level.
    given : int array
        Other entries that the terms depend on.
    is_quadratic : bool
        Whether they are quadratic functions of the entries of a level, as those of normal
        distributions are.
    sources : tuple of variables
        The terms of the row-free part that these are.
    as_rows : LevelsAsRows or None
        The same as functions of a few linear predictors, where that is possible.
    """

    terms: Callable[[NDArray], NDArray[np.float64]]
    derivatives: Callable[[NDArray], tuple[NDArray[np.float64], NDArray[np.float64]]]
    given: NDArray[np.int64]
    is_quadratic: bool
    sources: tuple[Variable, ...] = ()
    as_rows: LevelsAsRows | None = None


class PartialDerivatives(NamedTuple):
    """Derivatives of the row-free part with respect to some entries.

    Attributes
    ----------
    gradient : callable
        From a raveled point to a float array, shape (n,).
    hessian : callable
        From a raveled point to derivatives of that with respect to all entries, shape (n, d).
    given : int array
        Other entries that the terms with these ones depend on.
    """

    gradient: Callable[[NDArray], NDArray[np.float64]]
    hessian: Callable[[NDArray], NDArray[np.float64]]
    given: NDArray[np.int64]


@dataclass(frozen=True)
class _ByDifferences:
    """Rows of a Hessian, by differences of the gradient."""

    gradient: Callable[[NDArray], NDArray[np.float64]]
    entries: NDArray[np.int64]

    def __call__(self, point: NDArray) -> NDArray[np.float64]:
        rows = np.empty((self.entries.size, point.size))
        for number, entry in enumerate(self.entries):
            step = np.zeros_like(point)
            step[entry] = _SMALL_STEP
            ahead, behind = self.gradient(point + step), self.gradient(point - step)
            rows[number] = (ahead - behind) / (2.0 * _SMALL_STEP)
        return rows


@dataclass(frozen=True)
class _ByLevel:
    """Gradients, and Hessians by differences of gradients.

    Levels are independent, so that an entry of all levels is moved at once. A step of 1 is exact
    for quadratic functions; what proposals make of others need not be exact.
    """

    slope: Callable[..., NDArray]
    entries: NDArray[np.int64]
    step: float

    def __call__(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gradients = self.slope(point)
        columns = []
        for own in self.entries.T:
            there = point.copy()
            there[own] += self.step
            columns.append((self.slope(there) - gradients) / self.step)
        hessians = np.stack(columns, axis=2)
        return gradients, 0.5 * (hessians + hessians.swapaxes(1, 2))


def level_terms(at: ModelAt, entries: NDArray[np.int64]) -> LevelTerms:
    """Write the row-free part as a sum over the levels of a factor and a rest without them.

    Parameters
    ----------
    at : ModelAt
        Where it is verified: levels are moved by turns, and only their own terms may change.
    entries : int array, shape (G, q)
        Positions of the entries of each level.

    Raises
    ------
    NotByLevelError
        Some term is none of a level.
    """
    start, moved = at.raveled, _variables_with(at, entries)
    if any(variable not in at.likelihood.model.values_to_rvs for variable in moved):
        at = at._replace(likelihood=at.likelihood.without_joint_terms)
    likelihood, sources = at.likelihood, _sources(at, entries)
    by_level = [_with_axis_of_levels(term, at, len(entries)) for term in sources]
    terms, theta = at.joined(*by_level)
    values = _made(likelihood, theta, terms)
    axes = _axes(values, entries, start)
    as_rows = _levels_as_rows(at, by_level, axes, entries)
    if as_rows is not None:
        _verify(as_rows, values, axes, entries, start)
        its = (as_rows.terms, as_rows.derivatives)
        is_quadratic = _is_quadratic(*its, entries, start)
        return LevelTerms(*its, as_rows.given, is_quadratic, sources, as_rows)
    total = sum(sum_over_others(term, axis) for term, axis in zip(terms, axes, strict=True))
    slope = grad(stabilized(total.sum()), theta, disconnected_inputs="ignore")
    of_levels = _made(likelihood, theta, total)
    own = compiled(likelihood.model, [theta], slope[entries].astype("float64"), None)
    derivatives = _ByLevel(own, entries, 1.0)
    is_quadratic = _is_quadratic(of_levels, derivatives, entries, start)
    if not is_quadratic:  # evaluated at every step
        of_levels = compiled(likelihood.model, [theta], total.astype("float64"), None)
        derivatives = _ByLevel(own, entries, _SMALL_STEP)
    given = _given(at, sources, entries)
    return LevelTerms(of_levels, derivatives, given, is_quadratic, sources)


def _with_axis_of_levels(term: Variable, at: ModelAt, n_levels: int) -> Variable:
    """A term with an axis of the levels, which may be the entries of a matrix."""
    shape = Known(at.likelihood.value_vars, at.point).shape(term)
    is_matrix = len(shape) > 1 and n_levels not in shape and np.prod(shape) == n_levels
    return term.ravel() if is_matrix else term


def _verify(
    as_rows: LevelsAsRows,
    values: Callable[..., list],
    axes: list[int],
    entries: NDArray[np.int64],
    start: NDArray,
) -> None:
    """Compare terms that were cut to levels with the terms themselves."""
    rng = np.random.default_rng(4)
    near = start + rng.uniform(-0.3, 0.3, size=start.size)
    far = near.copy()
    far[entries] += _widths(as_rows.derivatives(near)[1]) * rng.standard_normal(entries.shape)
    for point in (start, near, far):
        parts = zip(values(point), axes, strict=True)
        moved = (np.moveaxis(value, axis, 0) for value, axis in parts)
        expected = sum(value.reshape(len(value), -1).sum(axis=1) for value in moved)
        if not np.allclose(as_rows.terms(point), expected, rtol=1e-6, atol=1e-6):
            raise NotByLevelError("a prior gives other numbers for a level by itself")


def partial_row_free(at: ModelAt, entries: NDArray[np.int64]) -> PartialDerivatives:
    """Derivatives of the row-free part with respect to some entries, from the terms that have them.

    Parameters are those of `level_terms`, with entries of shape (n,).
    """
    sources = _sources(at, entries)
    if not sources:
        nothing = np.zeros((entries.size, at.raveled.size))
        everywhere = partial(_same, nothing[:, 0]), partial(_same, nothing)
        return PartialDerivatives(*everywhere, entries[:0])
    terms, theta = at.joined(*sources)
    value = stabilized(sum(term.sum() for term in terms))
    slope = grad(value, theta, disconnected_inputs="ignore")
    hessian = _ByDifferences(_made(at.likelihood, theta, slope), entries)
    gradient = _made(at.likelihood, theta, slope[entries])
    return PartialDerivatives(gradient, hessian, _given(at, sources, entries))


def _same(value: NDArray[np.float64], point: NDArray) -> NDArray[np.float64]:
    """What it is everywhere."""
    return value


def _sources(at: ModelAt, entries: NDArray[np.int64]) -> tuple[Variable, ...]:
    """Terms that depend on variables with some of the entries."""
    own = _variables_with(at, entries)
    return tuple(term for term in at.likelihood.row_free_terms if own & set(ancestors([term])))


def _variables_with(at: ModelAt, entries: NDArray[np.int64]) -> set[Variable]:
    """Those that have some of the entries."""
    numbers = PointMap.of(at.variables, at.point).numbers(entries.ravel())
    return {at.variables[k] for k in numbers}


def _made(likelihood: RowLikelihood, theta: Variable, outputs: Any) -> Callable[..., Any]:
    is_list = isinstance(outputs, list)
    exact = [o.astype("float64") for o in outputs] if is_list else outputs.astype("float64")
    return evaluated(likelihood.model, [theta], exact)


def _axes(values: Callable[..., list], entries: NDArray[np.int64], start: NDArray) -> list[int]:
    """Axis of the levels in each term."""
    n_levels, rng = len(entries), np.random.default_rng(0)
    shapes = [np.shape(value) for value in values(start)]
    fitting = [[k for k, length in enumerate(shape) if length == n_levels] for shape in shapes]
    nearby = (finite_nearby(lambda x: values(*x), [start], rng)[0] for _ in range(_POINTS))
    for here in (start, *nearby):
        before = values(here)
        for is_moved in _halves(n_levels):
            there = here.copy()
            there[entries[is_moved]] += rng.uniform(0.1, 0.3, size=entries[is_moved].shape)
            for number, after in enumerate(values(there)):
                changed = ~np.isclose(after, before[number], rtol=0.0, atol=0.0, equal_nan=True)
                fitting[number] = [
                    axis for axis in fitting[number] if not _of(changed, axis)[~is_moved].any()
                ]
    if not all(fitting):
        raise NotByLevelError("a prior is not a sum over the levels")
    return [axes[0] for axes in fitting]


def _halves(n_levels: int) -> Iterator[NDArray[np.bool_]]:
    """Sets of levels: of any two, in either order, some set has the first and not the second."""
    every = np.arange(n_levels)
    for digit in range(max(int(every[-1]).bit_length(), 1)):
        has_it = (every >> digit) & 1 == 1
        yield has_it
        yield ~has_it


def _of(changed: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    """Whether anything of a level changed."""
    return np.asarray(changed.any(axis=tuple(k for k in range(changed.ndim) if k != axis)))


def _is_quadratic(
    terms: Callable[[NDArray], NDArray],
    derivatives: Callable[[NDArray], tuple[NDArray, NDArray]],
    entries: NDArray[np.int64],
    start: NDArray,
) -> bool:
    """Whether second-order expansions are right far away, wherever the other entries are."""
    rng = np.random.default_rng(2)
    for distance, is_relative in itertools.product((1.0, 10.0, 100.0), (False, True)):
        here = start + rng.uniform(-0.5, 0.5, size=start.size)
        gradients, hessians = derivatives(here)
        moves = distance * rng.standard_normal(entries.shape)
        if is_relative:
            moves *= _widths(hessians)
        there = here.copy()
        there[entries] += moves
        curved = np.einsum("gij,gi,gj->g", hessians, moves, moves)
        expected = (gradients * moves).sum(axis=1) + 0.5 * curved
        if not np.allclose(terms(there) - terms(here), expected, rtol=1e-8, atol=1e-8):
            return False
    return True


def _widths(hessians: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations of the entries by the curvature of the terms; 1 where there is none."""
    curvatures = np.abs(np.einsum("gii->gi", hessians))
    return np.where(curvatures > 0.0, 1.0 / np.sqrt(np.maximum(curvatures, _TINY)), 1.0)


def _given(
    at: ModelAt, sources: Sequence[Variable], entries: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Other entries of the variables that terms are made of."""
    inside = set(ancestors(list(sources)))
    reads = [np.full(np.size(at.point[str(v.name)]), v in inside) for v in at.variables]
    return np.setdiff1d(np.flatnonzero(np.concatenate(reads)), entries)


# ------------------------------------------------------------------ levels as rows


def _levels_as_rows(
    at: ModelAt, terms: Sequence[Variable], axes: Sequence[int], entries: NDArray[np.int64]
) -> LevelsAsRows | None:
    """Cut terms of the row-free part to levels, as the likelihood is cut to rows.

    Parameters
    ----------
    at : ModelAt
    terms : sequence of variables
        Terms of the row-free part.
    axes : sequence of int
        The axis of the levels in each.
    entries : int array, shape (G, q)
        Positions of the entries of each level.

    Returns
    -------
    LevelsAsRows or None
        None where they cannot be cut, are functions of too many predictors, or read data that the
        user may replace.

    Raises
    ------
    NotByLevelError
        The terms of a level read another level.
    """
    likelihood = at.likelihood
    if _may_change(terms, likelihood.model):
        return None
    known = Known(likelihood.value_vars, at.point)
    plain = known.with_known_shapes(inlined(static_data(inlined(list(terms)))))
    known.learn_shapes(plain)
    known.learn_values(plain)
    try:
        rows, cut = cut_terms(plain, axes, known, len(entries))
    except CannotCut:
        return None
    leaves = tuple(cut.leaves)
    own = replace(likelihood, rows=rows, leaves=leaves, n_rows=len(entries))
    structure = find_predictors(at._replace(likelihood=own))
    if isinstance(structure, str):
        return None
    block = tuple(np.ascontiguousarray(leaf.array) for leaf in leaves)
    designs = design_function(structure, likelihood.model)(block)
    multipliers = _multipliers(designs, entries, structure.size)
    (read,) = np.nonzero(multipliers.any(axis=(1, 2)))
    function = row_derivatives_of(structure, read.tolist())
    if isinstance(function, str):
        return None
    return LevelsAsRows(
        block,
        designs,
        function,
        np.ascontiguousarray(multipliers[read]),
        np.setdiff1d(np.concatenate([d.spelled_out()[0].ravel() for d in designs]), entries),
        kernel_of(structure, 0),
    )


def _may_change(terms: Sequence[Variable], model: pm.Model) -> bool:
    """Whether terms read data that the user may replace; lengths of dimensions stay."""
    lengths = set(model.dim_lengths.values())
    return any(isinstance(v, SharedVariable) and v not in lengths for v in ancestors(terms))


def _multipliers(
    designs: Sequence[Design], entries: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """Multipliers of the entries of a level in each predictor."""
    n_levels, q = entries.shape
    found = np.zeros((len(designs), n_levels, q))
    place = np.full(size, -1)
    place[entries.ravel()] = np.arange(entries.size)
    for number, design in enumerate(designs):
        read, data = design.spelled_out()
        levels, columns = np.nonzero(place[read] >= 0)
        own = place[read[levels, columns]]
        if (own // q != levels).any():
            raise NotByLevelError("the prior of a level reads another level")
        np.add.at(found[number], (levels, own % q), data[levels, columns])
    return found
