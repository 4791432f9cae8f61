"""Smooth functions, time series and Gaussian processes."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from examples.families.models.data import N_ROWS
from examples.families.models.hilbert_space import process_moments
from examples.families.registry import family


def _curve(seed: int, n_rows: int = N_ROWS) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.0, size=n_rows)
    return x, rng.normal(np.sin(7.0 * x) + x, 0.5)


@family(nuts_draws=4_000)
def spline() -> None:
    """B-splines, 15 of them, with a random walk as prior of their coefficients."""
    x, y = _curve(51)
    knots = np.r_[[0.0] * 3, np.linspace(0.0, 1.0, 13), [1.0] * 3]
    basis = BSpline.design_matrix(x, knots, 3).toarray()
    steps = pm.Normal("steps", 0.0, 1.0, shape=basis.shape[1] - 1)
    first, spread = pm.Normal("first", 0.0, 2.0), pm.HalfNormal("spread", 1.0)
    weights = first + pm.math.concatenate([[0.0], pm.math.cumsum(spread * steps)])
    pm.Normal("y", basis @ weights, pm.HalfNormal("sigma", 1.0), observed=y)


@family(reference=lambda: process_moments(*_curve(52)))
def hilbert_space_process() -> None:
    """Gaussian process in 25 basis functions (pm.gp.HSGP)."""
    x, y = _curve(52)
    scale, length = pm.HalfNormal("scale", 2.0), pm.InverseGamma("length", 5.0, 1.0)
    covariance = scale**2 * pm.gp.cov.Matern52(1, ls=length)
    process = pm.gp.HSGP(m=[25], c=1.5, cov_func=covariance)
    f = process.prior("f", X=x[:, None])
    pm.Normal("y", f, pm.HalfNormal("sigma", 1.0), observed=y)


@family(is_row_wise=False)
def full_process() -> None:
    """Gaussian process, integrated out (pm.gp.Marginal)."""
    x, y = _curve(53, 200)
    process = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, pm.HalfNormal("length")))
    process.marginal_likelihood("y", X=x[:, None], y=y, sigma=0.5)


@family(is_row_wise=False)
def autoregression() -> None:
    """Autoregressive series (pm.AR)."""
    y = np.random.default_rng(54).standard_normal(2_000)
    start = pm.Normal.dist(0.0, 1.0)
    rho = pm.Normal("rho", 0.0, 0.5, shape=1)
    pm.AR("y", rho=rho, sigma=1.0, init_dist=start, observed=y)


@family(is_row_wise=False)
def latent_random_walk() -> None:
    """Local level: a latent random walk, observed with noise."""
    y = np.random.default_rng(55).standard_normal(500).cumsum()
    step, start = pm.HalfNormal("step", 1.0), pm.Normal.dist(0.0, 1.0)
    level = pm.GaussianRandomWalk("level", sigma=step, init_dist=start, shape=y.size)
    pm.Normal("y", level, pm.HalfNormal("sigma", 1.0), observed=y)


@family()
def lagged_predictor() -> None:
    """Regression on the response before (its lag as a column of data)."""
    rng = np.random.default_rng(56)
    y = np.zeros(N_ROWS)
    for i in range(1, N_ROWS):
        y[i] = 0.2 + 0.6 * y[i - 1] + rng.standard_normal()
    a, rho = pm.Normal("a", 0.0, 1.0), pm.Normal("rho", 0.0, 0.5)
    pm.Normal("y", a + rho * y[:-1], pm.HalfNormal("sigma", 1.0), observed=y[1:])
