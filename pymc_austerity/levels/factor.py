"""All levels of a factor, given everything else: their normal approximations and their prior."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.rows import LevelRows
from pymc_austerity.levels.terms import KeptAtAnchor, Products
from pymc_austerity.parts import compiled_once, reals

_FLOOR, _SMALLEST = 1e-10, 1e-12
"""Smallest eigenvalue of a precision without a Cholesky factor: absolute, and as a share of the
largest one. The first also holds for precisions of a single entry."""

_SMALL = 16
"""Entries of a level beyond which LAPACK takes less time than plain loops do."""


class LevelNormals(NamedTuple):
    r"""One normal distribution :math:`N(m_g, P_g^{-1})` for each level.

    Attributes
    ----------
    mean : float array, shape (G, q)
    root : float array, shape (G, q, q)
        Cholesky factors :math:`C_g C_g' = P_g`, lower triangles.
    log_volume : float
        Sum of the logarithms of the determinants of the roots of the covariances.
    """

    mean: NDArray[np.float64]
    root: NDArray[np.float64]
    log_volume: float

    @property
    def inverse_root(self) -> NDArray[np.float64]:
        """:math:`C_g^{-1}`, shape (G, q, q)."""
        if self.root.shape[1] == 1:
            return 1.0 / self.root
        return np.asarray(np.linalg.inv(self.root), dtype=np.float64)

    def standard(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values, shape (G, q), standardized: draws of these distributions are standard normal."""
        moved = values - self.mean
        if self.root.shape[1] == 1:
            return self.root[:, 0] * moved
        standard: NDArray[np.float64] = np.einsum("gji,gj->gi", self.root, moved)
        return standard

    def values(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inverse of `standard`."""
        values = np.empty_like(standard)
        fill_values(self.mean, self.root, standard, values)
        return values


def normals_of(precision: NDArray[np.float64], slope: NDArray[np.float64]) -> LevelNormals:
    r"""The distributions with log-densities :math:`s_g' x - x' P_g x / 2` up to constants.

    Parameters
    ----------
    precision : float array, shape (G, q, q)
        Where one is not positive definite, as under a prior that is not log-concave, its negative
        eigenvalues change their sign.
    slope : float array, shape (G, q)

    Examples
    --------
    >>> normals = normals_of(np.array([[[4.0]]]), np.array([[2.0]]))
    >>> normals.mean, normals.values(np.array([[1.0]]))
    (array([[0.5]]), array([[1.]]))
    """
    mean, root = np.empty_like(slope), np.empty_like(precision)
    q = precision.shape[1]
    if q <= _SMALL:
        volume = fill_normals(precision, slope, mean, root)
        if q == 1 or not math.isnan(volume):
            return LevelNormals(mean, root, volume)
    root = _roots(precision)
    inverse = np.asarray(np.linalg.inv(root), dtype=np.float64)
    mean = np.matmul(inverse.swapaxes(1, 2), np.matmul(inverse, slope[:, :, None]))[:, :, 0]
    diagonals = np.diagonal(root, axis1=1, axis2=2)
    return LevelNormals(np.ascontiguousarray(mean), root, -float(np.log(diagonals).sum()))


@compiled_once
def fill_normals(
    precision: NDArray[np.float64],
    slope: NDArray[np.float64],
    mean: NDArray[np.float64],
    root: NDArray[np.float64],
) -> float:
    """Fill in means and roots, and return the log-volume.

    The log-volume is NaN where a precision of several entries is not positive definite.
    """
    n_levels, q = slope.shape
    volume, product = 0.0, 1.0
    if q == 1:
        arrays = (precision.ctypes.data, slope.ctypes.data, mean.ctypes.data, root.ctypes.data)
        return _fill_normals_of_one(*arrays, n_levels)
    for g in range(n_levels):
        for j in range(q):
            total = slope[g, j]
            for i in range(j, q):
                rest = precision[g, i, j]
                for k in range(j):
                    rest -= root[g, i, k] * root[g, j, k]
                root[g, j, i] = 0.0
                root[g, i, j] = rest
            square = root[g, j, j]
            if not 0.0 < square < math.inf:
                return math.nan
            diagonal = math.sqrt(square)
            root[g, j, j] = diagonal
            for i in range(j + 1, q):
                root[g, i, j] /= diagonal
            for k in range(j):
                total -= root[g, j, k] * mean[g, k]
            mean[g, j] = total / diagonal
            product *= diagonal
            if not 1e-100 < product < 1e100:
                volume -= math.log(product)
                product = 1.0
        for i in range(q - 1, -1, -1):
            for k in range(i + 1, q):
                mean[g, i] -= root[g, k, i] * mean[g, k]
            mean[g, i] /= root[g, i, i]
    return volume - math.log(product)


@compiled_once
def _fill_normals_of_one(precision: int, slope: int, mean: int, root: int, n_levels: int) -> float:
    """The same for levels of one entry, by addresses: the first loop uses vector instructions."""
    precisions, slopes, means, roots = reals(precision), reals(slope), reals(mean), reals(root)
    for g in range(n_levels):
        square = abs(precisions[g])
        square = _FLOOR if square < _FLOOR else square
        roots[g], means[g] = math.sqrt(square), slopes[g] / square
    volume, product = 0.0, 1.0
    for g in range(n_levels):
        product *= roots[g]
        if not 1e-100 < product < 1e100:
            volume -= math.log(product)
            product = 1.0
    return volume - math.log(product)


@compiled_once
def fill_values(
    mean: NDArray[np.float64],
    root: NDArray[np.float64],
    standard: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Fill in `LevelNormals.values`."""
    n_levels, q = values.shape
    for g in range(n_levels):
        for i in range(q - 1, -1, -1):
            rest = standard[g, i]
            for j in range(i + 1, q):
                rest -= root[g, j, i] * (values[g, j] - mean[g, j])
            values[g, i] = mean[g, i] + rest / root[g, i, i]


def _roots(precision: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(precision).all():  # the move is rejected; LAPACK might not return
        return np.full_like(precision, np.nan)
    try:
        return np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(precision)
        sizes = np.abs(values)
        least = np.maximum(_SMALLEST * sizes.max(axis=1, keepdims=True), _FLOOR)
        raised = vectors * np.maximum(sizes, least)[:, None, :]
        symmetric = raised @ vectors.swapaxes(1, 2)
        return np.asarray(np.linalg.cholesky(symmetric), dtype=np.float64)


class PriorByAddress(Protocol):
    """Derivatives of a prior in compiled code; see `pymc_austerity.model.LevelsAsRows`."""

    @property
    def address(self) -> int:
        """Address of the function."""

    @property
    def table(self) -> NDArray[np.int64]:
        """What the function reads."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The terms of the row-free part of the log-density that depend on levels.

    Attributes
    ----------
    terms : callable
        Maps a raveled point to the terms of each level, shape (G,), nats.
    derivatives : callable
        Maps a raveled point to gradients, shape (G, q), and Hessians, shape (G, q, q), with
        respect to the entries of each level.
    given : int array
        Entries of other blocks on which the terms depend.
    hyperparameters : int array
        Those of `given` on which no row depends.
    is_quadratic : bool
        Whether the terms are quadratic functions of the entries of a level.
    by_address : PriorByAddress or None
        The derivatives in compiled code, if there is such a function.
    is_all : bool
        Whether no other term of the row-free part depends on the levels.
    """

    terms: Callable[[NDArray], NDArray[np.float64]]
    derivatives: Callable[[NDArray], tuple[NDArray[np.float64], NDArray[np.float64]]]
    given: NDArray[np.int64]
    hyperparameters: NDArray[np.int64]
    is_quadratic: bool
    by_address: PriorByAddress | None = None
    is_all: bool = True


@dataclass(frozen=True, eq=False)
class LevelsOfFactor:
    r"""Levels of a factor: a normal approximation of each, given everything else.

    Attributes
    ----------
    names : str
        Names of the variables.
    entries : int array, shape (G, q)
        Entries of each level in the raveled point.
    anchor : float array, shape (G, q)
        Point about which the rows are expanded.
    hessians : float array, shape (G, q, q)
        Hessians of the expansion with respect to the entries of each level.
    others : Products, of a matrix of shape (G q, d)
        Cross derivatives of the expansion, with respect to an entry of the levels and one of
        another block.
    gradient : float array, shape (G, q)
        Gradient of the expansion.
    prior : Prior
        Their terms of the row-free part.
    rows : LevelRows
        Rows of each level.
    """

    names: str
    entries: NDArray[np.int64]
    anchor: NDArray[np.float64]
    hessians: NDArray[np.float64]
    others: Products
    gradient: NDArray[np.float64]
    prior: Prior
    rows: LevelRows
    _derivatives: KeptAtAnchor = field(init=False, repr=False)
    _slopes: KeptAtAnchor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        its, read = self.prior, self.others.columns
        at_anchor = np.zeros(max(a.max(initial=0) for a in (self.entries, read, its.given)) + 1)
        at_anchor[self.entries] = self.anchor
        kept = KeptAtAnchor(its.derivatives, its.given, self.entries, at_anchor)
        object.__setattr__(self, "_derivatives", kept)
        slopes = KeptAtAnchor(self._slopes_at, read, np.empty(0, np.int64), at_anchor)
        object.__setattr__(self, "_slopes", slopes)

    def slopes(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the expansion at the levels' anchor given the others, shape (G, q).

        Parameters
        ----------
        moves : float array, shape (d,)
            All entries, minus the anchor.
        """
        slopes: NDArray[np.float64] = self._slopes(moves)
        return slopes

    def _slopes_at(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.gradient + self.others(moves).reshape(self.gradient.shape)

    def prior_derivatives(
        self, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`Prior.derivatives` with the levels at their anchor."""
        gradients, curvatures = self._derivatives(theta)
        return gradients, curvatures

    def normals(self, theta: NDArray[np.float64], slopes: NDArray[np.float64]) -> LevelNormals:
        """Approximate distribution of the levels minus their anchor, given the others."""
        gradients, curvatures = self.prior_derivatives(theta)
        return normals_of(-self.hessians - curvatures, slopes + gradients)

    def prior_difference(
        self,
        proposed: NDArray[np.float64],
        current: NDArray[np.float64],
        new: NDArray[np.float64],
        old: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Difference of the row-free part for each level, shape (G,), nats.

        Parameters
        ----------
        proposed, current : float array, shape (d,)
            Points that differ only in the levels.
        new, old : float array, shape (G, q)
            Their levels, minus the anchor.
        """
        if not self.prior.is_quadratic:
            return self.prior.terms(proposed) - self.prior.terms(current)
        gradients, curvatures = self.prior_derivatives(current)
        return _quadratic(gradients, curvatures, new, old)

    def expansion(
        self, slopes: NDArray[np.float64], new: NDArray[np.float64], old: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Difference of the expansion for each level, shape (G,), nats."""
        return _quadratic(slopes, self.hessians, new, old)


def _quadratic(
    slopes: NDArray[np.float64],
    hessians: NDArray[np.float64],
    new: NDArray[np.float64],
    old: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Difference of quadratic functions between two points of each level, shape (G,)."""
    differences = np.empty(len(new))
    fill_quadratic(slopes, hessians, new, old, differences)
    return differences


@compiled_once
def fill_quadratic(
    slopes: NDArray[np.float64],
    hessians: NDArray[np.float64],
    new: NDArray[np.float64],
    old: NDArray[np.float64],
    differences: NDArray[np.float64],
) -> None:
    """Fill in the differences of quadratic functions between two points of each level."""
    n_levels, q = new.shape
    for g in range(n_levels):
        differences[g] = 0.0
        for i in range(q):
            slope = 0.0
            for j in range(q):
                slope += hessians[g, i, j] * (0.5 * (new[g, j] + old[g, j]))
            differences[g] += (new[g, i] - old[g, i]) * (slopes[g, i] + slope)
