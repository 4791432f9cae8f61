"""Normal distributions of the entries of each level."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LevelNormals", "normals_of"]

_FLOOR, _SMALLEST = 1e-10, 1e-12
"""Least eigenvalue of a precision, and as a share of its largest one."""


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
        return _times(self.root.swapaxes(1, 2), values - self.mean)

    def values(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inverse of `standard`."""
        return self.mean + _times(self.inverse_root.swapaxes(1, 2), standard)

    @property
    def log_volume(self) -> NDArray[np.float64]:
        """Logarithms of the determinants of the roots of the covariances, shape (G,)."""
        diagonals = np.diagonal(self.inverse_root, axis1=1, axis2=2)
        volumes: NDArray[np.float64] = np.log(diagonals).sum(axis=1)
        return volumes


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
    if precision.shape[1] == 1:
        root = np.sqrt(np.maximum(np.abs(precision), _FLOOR))
        inverse = 1.0 / root
    else:
        root = _roots(precision)
        inverse = np.asarray(np.linalg.inv(root), dtype=np.float64)
    mean = _times(inverse.swapaxes(1, 2), _times(inverse, slope))
    return LevelNormals(mean, root, inverse)


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


def _times(matrices: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Product of each matrix with its vector."""
    if matrices.shape[1] == 1:
        return matrices[:, :, 0] * vectors
    product: NDArray[np.float64] = np.matmul(matrices, vectors[:, :, None])[:, :, 0]
    return product
