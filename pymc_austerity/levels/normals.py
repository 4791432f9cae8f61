"""Normal distributions of the entries of each level."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import reals

__all__ = ["LevelNormals", "normals_of"]

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


@numba.njit(cache=True, error_model="numpy")
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


@numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
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


@numba.njit(cache=True, error_model="numpy")
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
