"""Constants of third derivatives of rows: row by row, or in groups of similar rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.cell_bounds import CellBounds, kinds_of_rows, tabulated_constants
from pymc_austerity.model.bounds.enclosure import (
    Boxes,
    about_groups,
    about_rows,
    at_points,
    enclose,
    first_unbounded,
    is_by_row,
    norms,
    of_rows,
    smallest_taylor_form,
)
from pymc_austerity.model.bounds.scalar_function import ScalarFunction
from pymc_austerity.model.operations.enclosures import NoRuleError

_CELLS_AT_ONCE = 2048
"""Boxes whose Taylor coefficients are held at a time."""

_ROUNDING, _NOTHING = 1e-6, 1e-13
"""Error of derivatives by cancellation that is acceptable: relative, and in nats."""

_TRIED, _SMALLER = 128, 8
"""Rows without a bound that are tried alone, and how much smaller groups become if one has one."""

_GROUPS, _LARGEST_GROUP = 1_024, 256
"""Groups that the rows of a chunk are cut into, and how many rows a group has at most."""

_FEWEST_FOR_TABLE = 1000
"""Rows from which on a table of cells costs less than the rows one by one."""

_ORDERS = {1: 8, 2: 6, 3: 5, 4: 5}
_LARGEST_COUNT = 8
_SLACK = 1.0 + 1e-6
"""Covers the rounding of constants that a model computes in single precision."""

_FAR = 1e6
"""In standard deviations, what is infinite where rows are compared."""

_FEW_PRODUCTS = 3_000_000
"""Products of Taylor coefficients of all groups of rows, in a product of two functions, with which
a formula of usual length takes some ten seconds."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows, as many as their data are held at a time.

    Attributes
    ----------
    function : ScalarFunction
    center : float array, shape (m, k)
        Predictors at the anchor.
    lengths : float array, shape (m, k)
        Of the predictors' rows of Z.
    spread : float array, shape (m,)
        Largest eigenvalue of the matrix of cosines between these rows of Z.
    data : dict of variable to array
    """

    function: ScalarFunction
    center: NDArray[np.float64]
    lengths: NDArray[np.float64]
    spread: NDArray[np.float64]
    data: Mapping[Variable, NDArray]

    @classmethod
    def of(
        cls,
        function: ScalarFunction,
        arrays: Sequence[NDArray],
        center: NDArray[np.float64],
        gram: NDArray[np.float64],
    ) -> "Chunk":
        """Of rows with this data, predictors at the anchor, and products Z Z', shape (m, k, k)."""
        lengths = np.sqrt(np.einsum("njj->nj", gram))
        spread = _largest_eigenvalue_of_cosines(gram, lengths)
        return cls(function, center, lengths, spread, function.constants_of(arrays))

    def some(self, rows: NDArray[np.intp]) -> "Chunk":
        """Some of the rows."""
        own = self.center[rows], self.lengths[rows], self.spread[rows]
        return Chunk(self.function, *own, of_rows(self.data, rows, len(self.center)))

    def boxes(self, radius: float) -> Boxes:
        """Boxes about the rows."""
        return about_rows(self.center, radius * self.lengths, self.data)

    def like_rows(self, size: int) -> list[NDArray[np.intp]]:
        """Groups of rows with like predictors and data, and with the same indices."""
        n_rows = len(self.center)
        if size == 1:
            return list(np.arange(n_rows)[:, None])
        columns, indices = list(self.center.T) + list(self.lengths.T), []
        for v, values in self.data.items():
            if is_by_row(values, n_rows):
                own = list(np.asarray(values, dtype=np.float64).reshape(n_rows, -1).T)
                columns += own
                indices += own if v in self.function.indices else []
        return groups_of_like_rows(columns, indices, size=size)


def _largest_eigenvalue_of_cosines(
    gram: NDArray[np.float64], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    n_rows, k = lengths.shape
    if k == 1:
        return np.ones(n_rows)
    scales = np.maximum(lengths, np.finfo(float).tiny)
    if k == 2:
        return 1.0 + abs(gram[:, 0, 1] / scales[:, 0] / scales[:, 1])
    cosines = gram / scales[:, :, None] / scales[:, None, :]
    return np.asarray(np.linalg.eigvalsh(cosines)[:, -1], dtype=np.float64)


def constants_by_groups(
    chunk: Chunk, radii: Sequence[float], order: int, size: int
) -> NDArray[np.float64]:
    r"""Bounds on the third derivatives of rows, from boxes that hold the boxes of many rows.

    Norms of the q-th derivative are sums of products of q lengths. So a bound with the largest
    lengths of a group, :math:`L_j`, times :math:`\max_j (|z_{ij}| / L_j)^3` is one for row i,
    because q is at least 3.

    Parameters
    ----------
    chunk : Chunk
    radii : sequence of float
    order : int
        Highest order of derivatives.
    size : int
        Rows of a group, at most.

    Returns
    -------
    float array, shape (number of radii, m)
        NaN or infinite for the rows of a group without a bound.
    """
    constants = _in_groups(chunk, radii, order, size)
    for found, radius in zip(constants, radii, strict=True):
        _mend(found, chunk, radius, order, size)
    return constants


def _mend(found: NDArray[np.float64], chunk: Chunk, radius: float, order: int, size: int) -> None:
    """Bound rows in smaller groups where their group has no bound, while some have one alone."""
    while size > 1:
        lost = np.flatnonzero(~np.isfinite(found))
        some = chunk.some(lost[:: max(lost.size // _TRIED, 1)])
        if not lost.size or not np.isfinite(_in_groups(some, [radius], order, 1)).any():
            return
        size = max(size // _SMALLER, 1)
        found[lost] = _in_groups(chunk.some(lost), [radius], order, size)[0]


def _in_groups(chunk: Chunk, radii: Sequence[float], order: int, size: int) -> NDArray[np.float64]:
    """Constants of rows, from groups of so many rows."""
    groups = chunk.like_rows(size)
    constants = np.empty((len(radii), len(chunk.center)))
    for start in range(0, len(groups), _CELLS_AT_ONCE):
        some = groups[start : start + _CELLS_AT_ONCE]
        rows = np.concatenate(some)
        constants[:, rows] = _of_groups(chunk, some, radii, order)
    return constants


def _of_groups(
    chunk: Chunk, groups: list[NDArray[np.intp]], radii: Sequence[float], order: int
) -> NDArray[np.float64]:
    """Constants of the rows of some groups, in the order of the groups."""
    rows, sizes = np.concatenate(groups), np.array([len(group) for group in groups])
    starts = np.cumsum(sizes) - sizes
    local, ordered = np.split(np.arange(rows.size), starts[1:]), chunk.some(rows)
    lengths = np.maximum.reduceat(ordered.lengths, starts)
    spread = np.maximum.reduceat(ordered.spread, starts)

    def of_boxes(radius: float, highest: int) -> list[NDArray[np.float64]]:
        boxes = about_groups(local, ordered.center, radius * ordered.lengths, ordered.data)
        jet = enclose(chunk.function, boxes, highest).box
        return norms(jet, range(3, highest + 1), lengths, spread)

    here, first = of_boxes(0.0, order - 1), ordered.some(starts)
    found = np.array([smallest_taylor_form(here, of_boxes(r, order), r) for r in radii])
    exact = enclose(chunk.function, at_points(first.center, first.data), 3).center
    (known,) = norms(exact, range(3, 4), lengths, spread)
    is_bound = np.isfinite(found) & (found >= known * (1.0 - _ROUNDING) - _NOTHING)
    largest = np.maximum(np.repeat(lengths, sizes, axis=0), np.finfo(float).tiny)
    share = (ordered.lengths / largest).max(axis=1)
    return np.repeat(np.where(is_bound, found, np.inf), sizes, axis=1) * share**3


def groups_of_like_rows(
    columns: list[NDArray], same: Sequence[NDArray] = (), *, size: int
) -> list[NDArray[np.intp]]:
    """Cut rows into groups of like rows, by halving along the widest column.

    Parameters
    ----------
    columns : list of float arrays, shape (N,)
        What rows are compared by. Columns with two values, such as conditions, are cut first.
    same : sequence of arrays, shape (N,)
        What the rows of a group have in common.
    size : int
        Largest size of a group.

    Examples
    --------
    >>> groups_of_like_rows([np.array([0.0, 9.0, 1.0, 8.0])], size=2)
    [array([0, 2]), array([3, 1])]
    """
    table = np.nan_to_num(np.column_stack(columns), posinf=_FAR, neginf=-_FAR)
    spread = table.std(axis=0)
    table = table / np.where(spread > 0.0, spread, 1.0)
    pending, groups = _with_the_same(same, len(table)), []
    for binary in table.T:
        if np.unique(binary[:1000]).size == 2:
            pending = [part for rows in pending for part in _by_value(rows, binary[rows])]
    while pending:
        rows = pending.pop()
        if rows.size <= size:
            groups.append(rows)
            continue
        part = table[rows]
        widest = int(np.argmax(part.max(axis=0) - part.min(axis=0)))
        middle = rows.size // 2
        halves = np.argpartition(part[:, widest], middle)
        pending += [rows[halves[middle:]], rows[halves[:middle]]]
    return groups


def _with_the_same(columns: Sequence[NDArray], n_rows: int) -> list[NDArray[np.intp]]:
    if not columns:
        return [np.arange(n_rows)]
    kind = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(kind, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(kind[order])) + 1)


def _by_value(rows: NDArray[np.intp], values: NDArray) -> list[NDArray[np.intp]]:
    middle = (values.min() + values.max()) / 2.0
    return [part for part in (rows[values <= middle], rows[values > middle]) if part.size]


class NoBoundError(ValueError):
    """The third derivatives of the rows have no finite bound; the message says why."""


def are_cheap(function: ScalarFunction, arrays: Sequence[NDArray], n_rows: int) -> bool:
    """Whether the bounds of rows take some seconds at most, or rows are of few kinds.

    Parameters
    ----------
    function : ScalarFunction
        Log-likelihood of rows in terms of k predictors.
    arrays : sequence of arrays
        Data of some of the rows, or of all, rows on axis 0.
    n_rows : int
        Number of all rows.
    """
    k = function.n_predictors
    order, n_groups = _ORDERS.get(k, 4), -(-n_rows // _group_size(n_rows))
    if n_groups * comb(2 * k + order, order) <= _FEW_PRODUCTS:
        return True
    return k == 1 and kinds_of_rows(function.constants_of(arrays), len(arrays[0])) is not None


def _group_size(n_rows: int) -> int:
    return min(-(-n_rows // _GROUPS), _LARGEST_GROUP)


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
    k, n_rows = function.n_predictors, len(center)
    if k > _LARGEST_COUNT:
        raise NoBoundError(f"no bound (they have {k} predictors)")
    try:
        if k == 1 and n_rows > _FEWEST_FOR_TABLE:
            whole = Chunk.of(function, arrays, center, gram)
            if (kinds := kinds_of_rows(whole.data, n_rows)) is not None:
                cells = cells or CellBounds(function, float(np.nanmedian(center)))
                lengths = whole.lengths[:, 0]
                found = tabulated_constants(cells, whole.data, kinds, center[:, 0], lengths, radii)
                return _checked(found, whole, radii[0])
        size = _group_size(n_rows)
        constants, step = np.empty((len(radii), n_rows)), _GROUPS * size
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            chunk = Chunk.of(function, [array[rows] for array in arrays], center[rows], gram[rows])
            found = constants_by_groups(chunk, radii, _ORDERS.get(k, 4), size)
            constants[:, rows] = _checked(found, chunk, radii[0])
        return constants
    except NoRuleError as missing:
        raise NoBoundError(f"no bound (bounds of {missing} are unknown)") from None


def _checked(constants: NDArray[np.float64], chunk: Chunk, radius: float) -> NDArray[np.float64]:
    """Constants with their slack, infinite for rows without a bound, if these are few."""
    unbounded = np.flatnonzero(~np.isfinite(constants[0]))
    if 2 * unbounded.size > len(chunk.center):
        order = _ORDERS.get(chunk.function.n_predictors, 4)
        boxes = chunk.some(unbounded[:_CELLS_AT_ONCE]).boxes(radius)
        name = first_unbounded(chunk.function, boxes, order)
        raise NoBoundError(f"no bound ({name} has no finite enclosure)")
    return np.where(np.isfinite(constants), constants * _SLACK, np.inf)
