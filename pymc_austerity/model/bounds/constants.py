"""Constants of third derivatives of rows: row by row, or in groups of similar rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.boxes import (
    Boxes,
    about_groups,
    about_rows,
    at_points,
    groups_of_like_rows,
)
from pymc_austerity.model.bounds.cell_bounds import CellBounds, kinds_of_rows, tabulated_constants
from pymc_austerity.model.bounds.enclosure import enclose, first_unbounded
from pymc_austerity.model.bounds.scalar_function import ScalarFunction
from pymc_austerity.model.operations.enclosures import NoRuleError
from pymc_austerity.model.operations.jets import Jet

CELLS_AT_ONCE = 2048
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
        return Chunk(self.function, *own, self.part(rows))

    def part(self, rows: NDArray[np.intp]) -> dict[Variable, NDArray]:
        """Data of some of the rows."""
        n_rows = len(self.center)
        return {
            v: x if np.ndim(x) == 0 or len(x) != n_rows else x[rows] for v, x in self.data.items()
        }

    def boxes(self, radius: float, rows: NDArray[np.intp]) -> Boxes:
        """Boxes about some of the rows."""
        return about_rows(self.center[rows], radius * self.lengths[rows], self.part(rows))

    def like_rows(self, size: int) -> list[NDArray[np.intp]]:
        """Groups of rows with like predictors and data, and with the same indices."""
        n_rows = len(self.center)
        if size == 1:
            return list(np.arange(n_rows)[:, None])
        columns, indices = list(self.center.T) + list(self.lengths.T), []
        for v, values in self.data.items():
            if np.ndim(values) and len(values) == n_rows:
                own = list(np.asarray(values, dtype=np.float64).reshape(n_rows, -1).T)
                columns += own
                indices += own if v in self.function.indices else []
        return groups_of_like_rows(columns, indices, size=size)


def smallest_taylor_form(
    here: Sequence[NDArray], inside: Sequence[NDArray], radius: float
) -> NDArray[np.float64]:
    """The smallest of the bounds on third derivatives of order 3, 4, ... in the radius.

    Parameters
    ----------
    here : sequence of arrays
        Norms of the derivatives of order 3, 4, ... at the center.
    inside : sequence of arrays
        The same over the box, one order more.
    radius : float
    """
    smallest, exact = inside[0], np.zeros_like(inside[0])
    for n, at_center in enumerate(here):
        exact = exact + radius**n / factorial(n) * at_center
        form = exact + radius ** (n + 1) / factorial(n + 1) * inside[n + 1]
        smallest = np.fmin(smallest, form)
    return smallest


def is_bound(constants: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether bounds are finite and not below norms of third derivatives that are known."""
    return np.isfinite(constants) & (constants >= known * (1.0 - _ROUNDING) - _NOTHING)


@np.errstate(invalid="ignore", over="ignore")
def norm(
    jet: Jet, q: int, lengths: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bounds on the norms of the q-th derivatives in whitened coordinates.

    One is NaN where any coefficient is, of whatever order: a row that is not smooth has no bound.
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
    bound: NDArray[np.float64] = np.minimum(total, np.sqrt(squares * spread**q))
    return bound


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
    for start in range(0, len(groups), CELLS_AT_ONCE):
        some = groups[start : start + CELLS_AT_ONCE]
        rows = np.concatenate(some)
        constants[:, rows] = _of_groups(chunk, some, radii, order)
    return constants


def _of_groups(
    chunk: Chunk, groups: list[NDArray[np.intp]], radii: Sequence[float], order: int
) -> NDArray[np.float64]:
    """Constants of the rows of some groups, in the order of the groups."""
    rows, sizes = np.concatenate(groups), np.array([len(group) for group in groups])
    starts = np.cumsum(sizes) - sizes
    local = np.split(np.arange(rows.size), starts[1:])
    own = chunk.lengths[rows]
    lengths = np.maximum.reduceat(own, starts)
    spread = np.maximum.reduceat(chunk.spread[rows], starts)
    center, data = chunk.center[rows], chunk.part(rows)

    def norms(jet: Jet, orders: range) -> list[NDArray[np.float64]]:
        return [norm(jet, q, lengths, spread) for q in orders]

    def enclosed(radius: float) -> Jet:
        cells = about_groups(local, center, radius * own, data)
        return enclose(chunk.function, cells, order if radius else order - 1).box

    here = norms(enclosed(0.0), range(3, order))
    found = np.array(
        [
            smallest_taylor_form(here, norms(enclosed(radius), range(3, order + 1)), radius)
            for radius in radii
        ]
    )
    first = chunk.center[rows[starts]], chunk.part(rows[starts])
    (known,) = norms(enclose(chunk.function, at_points(*first), 3).center, range(3, 4))
    found = np.where(is_bound(found, known), found, np.inf)
    share = (own / np.maximum(np.repeat(lengths, sizes, axis=0), np.finfo(float).tiny)).max(axis=1)
    return np.repeat(found, sizes, axis=1) * share**3


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
    size = _group_size(len(center))
    step = _GROUPS * size
    constants = np.empty((len(radii), len(center)))
    for start in range(0, len(center), step):
        rows = slice(start, start + step)
        chunk = Chunk.of(function, [array[rows] for array in arrays], center[rows], gram[rows])
        try:
            constants[:, rows] = _finished(constants_by_groups(chunk, radii, order, size))
        except NoRuleError as missing:
            raise NoBoundError(f"no bound, because there is no rule for {missing}") from None
        unbounded = np.flatnonzero(~np.isfinite(constants[0, rows]))
        if 2 * unbounded.size > len(center[rows]):
            name = first_unbounded(
                function, chunk.boxes(radii[0], unbounded[:CELLS_AT_ONCE]), order
            )
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
        chunk = Chunk(function, center, lengths[:, None], np.ones(len(center)), data)
        name = first_unbounded(
            function, chunk.boxes(radii[0], unbounded[:CELLS_AT_ONCE]), _ORDERS[1]
        )
        raise NoBoundError(f"no bound, because {name} has no finite enclosure")
    return _finished(found)


def _finished(constants: NDArray[np.float64]) -> NDArray[np.float64]:
    constants = constants * _SLACK
    constants[~np.isfinite(constants)] = np.inf
    return constants
