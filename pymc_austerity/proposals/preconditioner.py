"""The matrix by which gradients are turned and noise is shaped."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from pymc_austerity.errors import SettingError, SettingTypeError

__all__ = ["Preconditioner", "checked_matrix"]


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """A covariance matrix M by its square root: ``root root' = M``.

    Attributes
    ----------
    root : float array, shape (d,) or (d, d)
        Standard deviations, or a lower triangular matrix.
    """

    root: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[np.float64]) -> "Preconditioner":
        """From variances, shape (d,), or a covariance, shape (d, d)."""
        root = np.sqrt(matrix) if matrix.ndim == 1 else np.linalg.cholesky(matrix)
        return cls(np.asarray(root, dtype=np.float64))

    @cached_property
    def _inverse_root(self) -> NDArray[np.float64]:
        if self.root.ndim == 1:
            return 1.0 / self.root
        return solve_triangular(self.root, np.eye(len(self.root)), lower=True)

    def times(self, gradient: NDArray) -> NDArray[np.float64]:
        """``M gradient``."""
        return self.spread(_product(self.root.T, gradient))

    def spread(self, standard: NDArray) -> NDArray[np.float64]:
        """``root standard``: noise with covariance M from standard normal noise."""
        return _product(self.root, standard)

    def squared_length(self, difference: NDArray) -> float:
        """``difference' M^-1 difference``."""
        standard = _product(self._inverse_root, difference)
        return float(standard.dot(standard))


def _product(matrix: NDArray, vector: NDArray) -> NDArray[np.float64]:
    return matrix * vector if matrix.ndim == 1 else matrix.dot(vector)


def checked_matrix(value: Any) -> NDArray[np.float64]:
    """Positive variances or a positive definite matrix, or one sentence about what it should be."""
    try:
        matrix = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SettingTypeError(
            f"preconditioner={value!r} cannot be used: give 'auto', None, variances of shape (d,) "
            "or a covariance of shape (d, d)."
        ) from error
    if not _is_covariance(matrix):
        raise SettingError(
            f"preconditioner of shape {matrix.shape} is no covariance: give positive variances of "
            "shape (d,) or a symmetric positive definite array of shape (d, d)."
        )
    return matrix


def _is_covariance(matrix: NDArray[np.float64]) -> bool:
    if not np.isfinite(matrix).all():
        return False
    if matrix.ndim == 1:
        return bool((matrix > 0.0).all())
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        return False
    symmetric = np.allclose(matrix, matrix.T, atol=0.0)
    return symmetric and bool(np.linalg.eigvalsh(matrix)[0] > 0.0)
