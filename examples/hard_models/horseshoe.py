"""A Gibbs sampler for the horseshoe, as a reference where Hamiltonian samplers get stuck."""

import numpy as np
from numpy.typing import NDArray

from examples.hard_models.moments import Moments


def horseshoe_moments(
    x: NDArray, y: NDArray, *, n_draws: int = 100_000, seed: int = 0
) -> dict[str, Moments]:
    r"""Moments of the coefficients of a normal regression with unit noise and a horseshoe prior.

    Every half-Cauchy scale is written as two inverse gamma distributions, so that all
    conditional distributions are known.

    Parameters
    ----------
    x, y : arrays, shapes (n, d) and (n,)
        Columns and responses.
    n_draws : int
        Sweeps, after a tenth of them that is thrown away.
    seed : int
        Of the random numbers.

    Returns
    -------
    dict of Moments
        Of ``beta[i]``, with errors from 50 batch means.

    References
    ----------
    Makalic, E. and Schmidt, D. F. (2016). A simple sampler for the horseshoe estimator. IEEE
    Signal Processing Letters 23(1).
    """
    rng = np.random.default_rng(seed)
    d = x.shape[1]
    gram, xy = x.T @ x, x.T @ y
    local, global_, nu, xi = np.ones(d), 1.0, np.ones(d), 1.0  # squared scales and auxiliaries
    draws = np.empty((n_draws, d))
    for number in range(-n_draws // 10, n_draws):
        root = np.linalg.cholesky(gram + np.diag(1.0 / (local * global_)))
        mean = np.linalg.solve(root.T, np.linalg.solve(root, xy))
        beta = mean + np.linalg.solve(root.T, rng.normal(size=d))
        local = (1.0 / nu + beta**2 / (2.0 * global_)) / rng.exponential(size=d)
        total = (beta**2 / local).sum() / 2.0
        global_ = (1.0 / xi + total) / rng.gamma((d + 1.0) / 2.0)
        nu = (1.0 + 1.0 / local) / rng.exponential(size=d)
        xi = (1.0 + 1.0 / global_) / rng.exponential()
        if number >= 0:
            draws[number] = beta
    return {f"beta[{i}]": _with_errors(draws[:, i]) for i in range(d)}


def _with_errors(draws: NDArray, n_batches: int = 50) -> Moments:
    batches = draws.reshape(n_batches, -1)
    means, sds = batches.mean(axis=1), batches.std(axis=1)
    errors = [float(values.std(ddof=1) / np.sqrt(n_batches)) for values in (means, sds)]
    return Moments(float(draws.mean()), float(draws.std()), *errors)
