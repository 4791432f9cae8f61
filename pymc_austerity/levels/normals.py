"""Normal distributions of the entries of each level."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["LevelNormals", "normals_of"]

_FLOOR, _SMALLEST = 1e-10, 1e-12
"""Least eigenvalue of a precision, and as a share of its largest one."""
_SMALL = 16
"""Entries of a level beyond which LAPACK takes less time than plain loops do."""


class LevelNormals(NamedTuple):
    r"""One normal distribution :math:`N(m_g, P_g^{-1})` for each level.

    Attributes
    ----------
    mean : float array, shape (G, q)
    root : float array, shape (G, q, q)
        Cholesky factors :math:`C_g C_g' = P_g`, lower triangles.
    inverse_root : float array, shape (G, q, q)
        :math:`C_g^{-1}`.
    """

    mean: NDArray[np.float64]
    root: NDArray[np.float64]
    inverse_root: NDArray[np.float64]

    def standard(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard normal if the values, shape (G, q), are distributed like this."""
        standard = np.empty_like(values)
        fill_standard(self.mean, self.root, values, standard)
        return standard

    def values(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inverse of `standard`."""
        values = np.empty_like(standard)
        fill_values(self.mean, self.inverse_root, standard, values)
        return values

    @property
    def log_volume(self) -> float:
        """Sum of the logarithms of the determinants of the roots of the covariances."""
        return float(log_volume(self.inverse_root))


def normals_of(precision: NDArray[np.float64], slope: NDArray[np.float64]) -> LevelNormals:
    r"""The distributions with log-densities :math:`s_g' x - x' P_g x / 2` but for constants.

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
    normals = LevelNormals(np.empty_like(slope), np.empty_like(precision), np.empty_like(precision))
    if precision.shape[1] <= _SMALL and fill_normals(precision, slope, *normals):
        return normals
    root = _roots(precision)
    inverse = np.asarray(np.linalg.inv(root), dtype=np.float64)
    half = np.matmul(inverse, slope[:, :, None])
    mean = np.matmul(inverse.swapaxes(1, 2), half)[:, :, 0]
    return LevelNormals(mean, root, inverse)


@numba.njit(cache=True, error_model="numpy")
def fill_normals(
    precision: NDArray[np.float64],
    slope: NDArray[np.float64],
    mean: NDArray[np.float64],
    root: NDArray[np.float64],
    inverse: NDArray[np.float64],
) -> bool:
    """Fill in what `LevelNormals` has; False where a precision is not positive definite."""
    n_levels, q = slope.shape
    for g in range(n_levels):
        for j in range(q):
            square = precision[g, j, j]
            for k in range(j):
                square -= root[g, j, k] * root[g, j, k]
            if q == 1:
                square = abs(square)
                square = _FLOOR if square < _FLOOR else square
            elif not 0.0 < square < math.inf:
                return False
            diagonal = math.sqrt(square)
            root[g, j, j], inverse[g, j, j] = diagonal, 1.0 / diagonal
            for i in range(j + 1, q):
                product = precision[g, i, j]
                for k in range(j):
                    product -= root[g, i, k] * root[g, j, k]
                root[g, i, j], root[g, j, i] = product / diagonal, 0.0
        for i in range(q):
            mean[g, i] = 0.0
        for i in range(q):
            half = inverse[g, i, i] * slope[g, i]
            for j in range(i):
                product = 0.0
                for k in range(j, i):
                    product -= root[g, i, k] * inverse[g, k, j]
                inverse[g, i, j], inverse[g, j, i] = product * inverse[g, i, i], 0.0
                half += inverse[g, i, j] * slope[g, j]
            for j in range(i + 1):
                mean[g, j] += inverse[g, i, j] * half
    return True


@numba.njit(cache=True)
def fill_standard(
    mean: NDArray[np.float64],
    root: NDArray[np.float64],
    values: NDArray[np.float64],
    standard: NDArray[np.float64],
) -> None:
    """Fill in `LevelNormals.standard`."""
    n_levels, q = values.shape
    for g in range(n_levels):
        for i in range(q):
            standard[g, i] = 0.0
            for j in range(i, q):
                standard[g, i] += root[g, j, i] * (values[g, j] - mean[g, j])


@numba.njit(cache=True)
def fill_values(
    mean: NDArray[np.float64],
    inverse: NDArray[np.float64],
    standard: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    """Fill in `LevelNormals.values`."""
    n_levels, q = values.shape
    for g in range(n_levels):
        for i in range(q):
            product = 0.0
            for j in range(i, q):
                product += inverse[g, j, i] * standard[g, j]
            values[g, i] = mean[g, i] + product


@numba.njit(cache=True, error_model="numpy")
def log_volume(inverse: NDArray[np.float64]) -> float:
    """`LevelNormals.log_volume`."""
    total = 0.0
    for g in range(inverse.shape[0]):
        for i in range(inverse.shape[1]):
            total += math.log(inverse[g, i, i])
    return total


def _roots(precision: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(precision).all():  # the move is refused; LAPACK might not return
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
