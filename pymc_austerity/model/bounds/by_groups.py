"""Bounds of groups of similar rows, which take far less time than those of single rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial

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
from pymc_austerity.model.bounds.enclosure import enclose
from pymc_austerity.model.bounds.scalar_function import ScalarFunction
from pymc_austerity.model.operations.jets import Jet

__all__ = [
    "CELLS_AT_ONCE",
    "Chunk",
    "constants_by_groups",
    "is_bound",
    "norm",
    "smallest_taylor_form",
]

CELLS_AT_ONCE = 2048
"""Boxes whose Taylor coefficients are held at a time."""

_ROUNDING, _NOTHING = 1e-6, 1e-13
"""Error of derivatives by cancellation that is acceptable: relative, and in nats."""


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


_TRIED, _SMALLER = 128, 8
"""Rows without a bound that are tried alone, and how much smaller groups become if one has one."""


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
