"""Posterior of the hyperparameters of a Gaussian process in basis functions, by quadrature."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy import stats

from examples.hard_models.moments import Moments, quadrature

_BOUNDS = {"scale": (0.05, 12.0), "length": (0.02, 2.5), "sigma": (0.3, 0.8)}


def process_moments(x: NDArray, y: NDArray, *, size: int = 41) -> dict[str, Moments]:
    r"""Moments of ``scale``, ``length`` and ``sigma`` of the model ``hilbert_space_process``.

    Given these, the responses are normal with covariance
    :math:`\Phi\,\mathrm{diag}(d)\,\Phi' + \sigma^2 I`, whose log-density takes the Cholesky
    factor of a matrix with as many rows as there are basis functions.

    Parameters
    ----------
    x, y : float arrays, shape (n,)
        Predictor and responses.
    size : int
        Points of the grid in each dimension.
    """
    phi, spectral = _basis(x)
    gram, moment, square, n = phi.T @ phi, phi.T @ y, float(y @ y), y.size
    eye = np.eye(gram.shape[0])

    def log_density(scale: NDArray, length: NDArray, sigma: NDArray) -> NDArray:
        scale, length, sigma = scale[:, 0], length[:, 0], sigma[:, 0]
        lengths, where = np.unique(length, return_inverse=True)
        weight = scale[:, None] * np.stack([spectral(each) for each in lengths])[where]
        inner = eye + weight[:, :, None] * gram * weight[:, None, :] / sigma[:, None, None] ** 2
        factor = np.linalg.cholesky(inner)
        solved = np.linalg.solve(factor, (weight * moment / sigma[:, None])[:, :, None])[:, :, 0]
        log_determinant = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        fit = square / sigma**2 - (solved**2).sum(axis=1) / sigma**2
        rows = -n * np.log(sigma) - 0.5 * (log_determinant + fit)
        prior = stats.halfnorm.logpdf(scale, scale=2.0) + stats.halfnorm.logpdf(sigma)
        return rows + prior + stats.invgamma.logpdf(length, 5.0, scale=1.0)

    return quadrature(log_density, _BOUNDS, size=size)


def _basis(x: NDArray) -> tuple[NDArray, Callable[[float], NDArray]]:
    """Basis functions of the rows, and the roots of their spectral density for a length."""
    length = pt.scalar("length", dtype="float64")
    process = pm.gp.HSGP(m=[25], c=1.5, cov_func=pm.gp.cov.Matern52(1, ls=length))
    phi, roots = process.prior_linearized(x[:, None])
    return phi.eval(), pytensor.function([length], roots)
