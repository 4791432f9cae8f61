"""Survival, censoring and truncation."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from examples.families.models.data import N_ROWS, columns
from examples.families.models.generalized import linear
from examples.families.registry import family

_END = 3.0


@family()
def censored_weibull() -> None:
    """Weibull survival times with censoring (pm.Censored)."""
    rng, x, eta = columns(41)
    times = np.exp(eta) * rng.weibull(1.5, size=N_ROWS)
    shape = pm.HalfNormal("shape", 2.0)
    survival = pm.Weibull.dist(alpha=shape, beta=pm.math.exp(linear(x)))
    pm.Censored("y", survival, lower=None, upper=_END, observed=times.clip(max=_END))


@family(settings={"likelihood": ["alive"]})
def weibull_by_potential() -> None:
    """Weibull survival times, those of the living in a pm.Potential."""
    rng, x, eta = columns(42)
    times = np.exp(eta) * rng.weibull(1.5, size=N_ROWS)
    died = times < _END
    shape, scale = pm.HalfNormal("shape", 2.0), pm.math.exp(linear(x))
    log_hazard = pt.log(shape / scale) + (shape - 1.0) * pt.log(times.clip(max=_END) / scale)
    cumulative = (times.clip(max=_END) / scale) ** shape
    pm.Potential("alive", died * log_hazard - cumulative)


@family()
def censored_normal() -> None:
    """Normal responses, censored on both sides (Tobit)."""
    rng, x, eta = columns(43)
    y = rng.normal(eta, 0.8).clip(-0.5, 1.5)
    latent = pm.Normal.dist(linear(x), pm.HalfNormal("sigma", 2.0))
    pm.Censored("y", latent, lower=-0.5, upper=1.5, observed=y)


@family()
def truncated_normal() -> None:
    """Normal responses, truncated from below (pm.Truncated)."""
    rng, x, eta = columns(44)
    y = rng.normal(eta, 0.8)
    kept = y > 0.0
    latent = pm.Normal.dist(linear(x[kept]), pm.HalfNormal("sigma", 2.0))
    pm.Truncated("y", latent, lower=0.0, observed=y[kept])


@family()
def piecewise_exponential() -> None:
    """Piecewise exponential hazards: person-periods as Poisson counts with exposure."""
    rng, x, eta = columns(45)
    period, exposure = rng.integers(8, size=N_ROWS), rng.uniform(0.2, 1.0, size=N_ROWS)
    y = rng.poisson(exposure * np.exp(-1.0 + 0.1 * period + 0.3 * eta))
    log_hazard = pm.Normal("log_hazard", -1.0, 1.0, shape=8)
    b = pm.Normal("b", 0.0, 1.0, shape=x.shape[1])
    pm.Poisson("y", exposure * pm.math.exp(log_hazard[period] + x @ b), observed=y)
