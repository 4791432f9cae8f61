"""Constants of rows that bound their third derivatives on balls about the anchor."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.cell_bounds import CellBounds
from pymc_austerity.model.bounds.cells import (
    Cells,
    about_groups,
    about_rows,
    at_points,
    groups_of_like_rows,
)
from pymc_austerity.model.bounds.enclosure import enclose, first_unbounded
from pymc_austerity.model.bounds.intervals import Interval
from pymc_austerity.model.bounds.jets import Jet
from pymc_austerity.model.bounds.rules import NoRuleError
from pymc_austerity.model.bounds.scalar_function import ScalarFunction
from pymc_austerity.model.bounds.table import kinds_of_rows, tabulated_constants

__all__ = ["NoBoundError", "are_cheap", "third_derivative_constants"]

_CHUNK = 65536
_PART = 2048
_FEWEST_FOR_TABLE = 1000
"""Rows from which on a table of cells costs less than the rows one by one."""
_LOOSE = 1.3
"""Bounds looser than this, against what the anchor alone would give, are refined row by row."""
_ORDERS = {1: 8, 2: 6, 3: 5, 4: 5}
_LARGEST_COUNT = 8
_SLACK = 1.0 + 1e-6
"""Covers the rounding of constants that a model computes in single precision."""


_NOTHING = 1e-13
"""Derivatives, in nats, that may be lost to cancellation."""

_FEW_COEFFICIENTS = 100_000
"""Taylor coefficients of all rows that are enclosed in well below a second."""


class NoBoundError(ValueError):
    """The third derivatives of the rows have no finite bound; the message says why."""


def are_cheap(function: ScalarFunction, arrays: Sequence[NDArray]) -> bool:
    """Whether the bounds of rows take little time: there are few rows, or few kinds of them.

    Parameters
    ----------
    function : ScalarFunction
        Log-likelihood of rows in terms of k predictors.
    arrays : sequence of arrays
        Data of the rows, rows on axis 0.
    """
    k, n_rows = function.n_predictors, len(arrays[0])
    if n_rows * comb(k + _ORDERS.get(k, 4), k) <= _FEW_COEFFICIENTS:
        return True
    return k == 1 and kinds_of_rows(function.constants_of(arrays), n_rows) is not None


def third_derivative_constants(
    function: ScalarFunction,
    arrays: Sequence[NDArray],
    center: NDArray[np.float64],
    gram: NDArray[np.float64],
    radii: Sequence[float],
    cells: CellBounds | None = None,
) -> NDArray[np.float64]:
    r"""Bounds on the third derivatives of rows on nested balls about the anchor.

    With :math:`\theta = \theta^* + R u` the predictors are :math:`\eta^* + Z u`, Z of shape
    (k, d). The constants satisfy, for all directions a, b, e and all :math:`|u| \leq \rho`,

    .. math:: |D^3 f(\eta^* + Z u)[Z a, Z b, Z e]| \leq c(\rho) |a| |b| |e|

    Parameters
    ----------
    function : ScalarFunction
        Log-likelihood of rows in terms of k predictors.
    arrays : sequence of arrays
        Data of the rows, rows on axis 0.
    center : float array, shape (N, k)
        Predictors at the anchor.
    gram : float array, shape (N, k, k)
        Z Z' of each row.
    radii : sequence of float
        Radii, ascending, in standard deviations of the whitened coordinates u.
    cells : CellBounds, optional
        For rows with one predictor that come in several calls: the constants of a row are then
        the same whatever rows and radii it is given with.

    Returns
    -------
    float array, shape (number of radii, N)
        Nats; infinite where a row has no bound.

    Raises
    ------
    NoBoundError
        An operation has no rule, or there is no bound for most rows.

    Notes
    -----
    Taylor form: derivatives of order 3 to P - 1 at the anchor, which are exact, and order P over
    the box that holds the ball, which interval arithmetic overestimates but the radius to the
    power of P - 3 makes small. The smallest over P is taken. In coordinates scaled by the length
    :math:`|z_j|` of each predictor's row of Z, the norm of the q-th derivative is at most the sum
    of its absolute entries, and at most its Frobenius norm times :math:`\lambda^{q/2}`, where
    :math:`\lambda` is the largest eigenvalue of the matrix of cosines between the rows of Z.

    References
    ----------
    Prado, E., Nemeth, C. and Sherlock, C. (2024). Metropolis-Hastings with scalable subsampling.
    arXiv 2407.19602, for bounds with one predictor.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pymc_austerity.model.bounds import scalar_function
    >>> eta, y = pt.dvector("eta"), pt.dvector("y")
    >>> logistic = scalar_function(y * eta - pt.softplus(eta), [eta], [y])
    >>> c = third_derivative_constants(
    ...     logistic, [np.ones(1)], np.zeros((1, 1)), np.full((1, 1, 1), 1.0), [0.01, 50.0])
    >>> c.round(4)
    array([[0.0012],
           [0.0962]])
    """
    k = function.n_predictors
    if k > _LARGEST_COUNT:
        raise NoBoundError(f"no bound, because rows have {k} predictors")
    if k == 1:
        data = function.constants_of(arrays)
        kinds = kinds_of_rows(data, len(center))
        if kinds is not None and len(center) > _FEWEST_FOR_TABLE:
            cells = cells or CellBounds(function, float(np.nanmedian(center)))
            return _by_table(cells, function, data, kinds, center, gram, radii)
    order = _ORDERS.get(k, 4)
    constants = np.empty((len(radii), len(center)))
    for start in range(0, len(center), _CHUNK):
        rows = slice(start, start + _CHUNK)
        chunk = _Chunk.of(function, [array[rows] for array in arrays], center[rows], gram[rows])
        try:
            constants[:, rows] = _of_chunk(chunk, radii, order)
        except NoRuleError as missing:
            raise NoBoundError(f"no bound, because there is no rule for {missing}") from None
        unbounded = np.flatnonzero(~np.isfinite(constants[0, rows]))
        if 2 * unbounded.size > len(center[rows]):
            name = first_unbounded(function, chunk.boxes(radii[0], unbounded[:_PART]), order)
            raise NoBoundError(f"no bound, because {name} has no finite enclosure")
    return constants


def _by_table(
    cells: CellBounds,
    function: ScalarFunction,
    data: Mapping[Variable, NDArray],
    kinds: tuple[NDArray[np.intp], NDArray[np.int8]],
    center: NDArray[np.float64],
    gram: NDArray[np.float64],
    radii: Sequence[float],
) -> NDArray[np.float64]:
    lengths = np.sqrt(gram[:, 0, 0])
    try:
        found = tabulated_constants(cells, data, kinds, center[:, 0], lengths, radii)
    except NoRuleError as missing:
        raise NoBoundError(f"no bound, because there is no rule for {missing}") from None
    unbounded = np.flatnonzero(~np.isfinite(found[0]))
    if 2 * unbounded.size > len(center):
        chunk = _Chunk(function, center, lengths[:, None], np.ones(len(center)), data)
        name = first_unbounded(function, chunk.boxes(radii[0], unbounded[:_PART]), _ORDERS[1])
        raise NoBoundError(f"no bound, because {name} has no finite enclosure")
    found *= _SLACK
    found[~np.isfinite(found)] = np.inf
    return found


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some rows, as many as their data and Taylor coefficients are held at a time."""

    function: ScalarFunction
    center: NDArray[np.float64]
    lengths: NDArray[np.float64]
    spread: NDArray[np.float64]
    data: Mapping[Variable, NDArray]

    @classmethod
    def of(
        cls, function: ScalarFunction, arrays: Sequence[NDArray], center: NDArray, gram: NDArray
    ) -> "_Chunk":
        lengths = np.sqrt(np.einsum("njj->nj", gram))
        spread = _largest_eigenvalue_of_cosines(gram, lengths)
        return cls(function, center, lengths, spread, function.constants_of(arrays))

    def part(self, rows: NDArray[np.intp]) -> dict[Variable, NDArray]:
        """Data of some of the rows."""
        n_rows = len(self.center)
        return {
            v: x if np.ndim(x) == 0 or len(x) != n_rows else x[rows] for v, x in self.data.items()
        }

    def boxes(self, radius: float, rows: NDArray[np.intp]) -> Cells:
        """Boxes about some of the rows."""
        return about_rows(self.center[rows], radius * self.lengths[rows], self.part(rows))

    def norms(self, jet: Jet, q: int, rows: Any = slice(None)) -> NDArray[np.float64]:
        """Bounds on the norms of the q-th derivatives of some rows."""
        return _norm(jet, q, self.lengths[rows], self.spread[rows])

    def like_rows(self) -> list[NDArray[np.intp]]:
        """Groups of rows with like predictors and data, and with the same indices."""
        n_rows = len(self.center)
        columns, indices = list(self.center.T) + list(self.lengths.T), []
        for v, values in self.data.items():
            if np.ndim(values) and len(values) == n_rows:
                own = list(np.asarray(values, dtype=np.float64).reshape(n_rows, -1).T)
                columns += own
                indices += own if v in self.function.indices else []
        return groups_of_like_rows(columns, indices)


def _of_chunk(chunk: _Chunk, radii: Sequence[float], order: int) -> NDArray[np.float64]:
    n_rows = len(chunk.center)
    here = np.empty((order - 3, n_rows))
    for rows in _parts(np.arange(n_rows)):
        jet = enclose(chunk.function, at_points(chunk.center[rows], chunk.part(rows)), order - 1)
        here[:, rows] = [chunk.norms(jet.center, q, rows) for q in range(3, order)]
    groups = chunk.like_rows()
    constants = np.empty((len(radii), n_rows))
    for r, radius in enumerate(radii):
        inside = _over_groups(chunk, groups, radius, order)
        constants[r] = _smallest_taylor_form(here, inside, radius)
        exact = _smallest_taylor_form(here, np.vstack([here, np.zeros(n_rows)]), radius)
        loose = np.flatnonzero(~(constants[r] <= _LOOSE * exact))
        for rows in _parts(loose if len(groups) < n_rows else loose[:0]):
            jet = enclose(chunk.function, chunk.boxes(radius, rows), order)
            inside = np.array([chunk.norms(jet.box, q, rows) for q in range(3, order + 1)])
            form = _smallest_taylor_form(here[:, rows], inside, radius)
            constants[r, rows] = np.fmin(constants[r, rows], form)
    # every form begins with the derivatives at the anchor: one below them is no bound
    is_bound = np.isfinite(constants) & (constants >= here[0] / _SLACK - _NOTHING)
    return np.where(is_bound, constants * _SLACK, np.inf)


def _over_groups(
    chunk: _Chunk, groups: list[NDArray[np.intp]], radius: float, order: int
) -> NDArray[np.float64]:
    """Norms of each row's derivatives of order 3 and above, from boxes that hold many rows."""
    inside = np.empty((order - 2, len(chunk.center)))
    for start in range(0, len(groups), _PART):
        part = groups[start : start + _PART]
        rows, sizes = np.concatenate(part), [len(g) for g in part]
        local = np.split(np.arange(rows.size), np.cumsum(sizes)[:-1])
        widths = radius * chunk.lengths[rows]
        cells = about_groups(local, chunk.center[rows], widths, chunk.part(rows))
        jet = enclose(chunk.function, cells, order).box
        each = {
            m: Interval(*(np.repeat(_full(end, len(part)), sizes) for end in x))
            for m, x in jet.items()
        }
        inside[:, rows] = [chunk.norms(each, q, rows) for q in range(3, order + 1)]
    return inside


def _full(end: NDArray, n: int) -> NDArray:
    return np.broadcast_to(end, (n,))


def _parts(rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    for start in range(0, rows.size, _PART):
        yield rows[start : start + _PART]


def _smallest_taylor_form(here: NDArray, inside: NDArray, radius: float) -> NDArray:
    """Bounds of order 3, 4, ... at the center and over the box, put together."""
    smallest, exact = inside[0], np.zeros_like(inside[0])
    for n, at_center in enumerate(here):
        exact = exact + radius**n / factorial(n) * at_center
        form = exact + radius ** (n + 1) / factorial(n + 1) * inside[n + 1]
        smallest = np.fmin(smallest, form)
    return smallest


@np.errstate(invalid="ignore", over="ignore")
def _norm(jet: Jet, q: int, lengths: NDArray, spread: NDArray) -> NDArray:
    """Bound on the norm of the q-th derivative in whitened coordinates.

    It is NaN where any coefficient is, of whatever order: a row that is not smooth has no bound.
    """
    unknown = sum(np.multiply(end, 0.0) for x in jet.values() for end in x)
    total = np.zeros(len(lengths)) + unknown
    squares = total.copy()
    for m, x in jet.items():
        if sum(m) == q:
            entry = np.maximum(abs(x.lower), abs(x.upper)) * np.prod(lengths ** np.array(m), axis=1)
            total = total + factorial(q) * entry
            # each of the q! / m! equal entries of the tensor is m! times the Taylor coefficient
            squares = squares + factorial(q) * np.prod([factorial(j) for j in m]) * entry**2
    return np.minimum(total, np.sqrt(squares * spread**q))


def _largest_eigenvalue_of_cosines(gram: NDArray, lengths: NDArray) -> NDArray:
    if gram.shape[1] == 1:
        return np.ones(len(gram))
    scales = np.maximum(lengths, np.finfo(float).tiny)
    return np.linalg.eigvalsh(gram / scales[:, :, None] / scales[:, None, :])[:, -1]
