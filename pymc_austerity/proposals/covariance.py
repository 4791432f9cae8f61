"""Checks of the covariances that users give."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError, SettingTypeError

__all__ = ["checked_covariance", "root_of"]


def checked_covariance(name: str, value: Any, words: str) -> NDArray[np.float64]:
    """Check positive variances or a positive definite matrix, or raise an error.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : array_like, shape (d,) or (d, d)
        What the user gave.
    words : str
        What else may be given, for the message.
    """
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SettingTypeError(
            f"{name} of type {type(value).__name__} cannot be used: give {words}, variances of "
            "shape (d,) or a covariance of shape (d, d)."
        ) from error
    if not _is_covariance(array):
        raise SettingError(
            f"{name} of shape {array.shape} is not a covariance: give positive variances of shape "
            "(d,) or a symmetric positive definite array of shape (d, d)."
        )
    return array


def _is_covariance(array: NDArray[np.float64]) -> bool:
    if not np.isfinite(array).all():
        return False
    if array.ndim == 1:
        return bool((array > 0.0).all())
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        return False
    symmetric = np.allclose(array, array.T, atol=0.0)
    return symmetric and bool(np.linalg.eigvalsh(array)[0] > 0.0)


def root_of(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations, shape (d,), or a lower triangular square root, shape (d, d)."""
    root = np.sqrt(covariance) if covariance.ndim == 1 else np.linalg.cholesky(covariance)
    return np.asarray(root, dtype=np.float64)
