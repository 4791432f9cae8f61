"""Mixtures and excess zeros."""

import numpy as np
import pymc as pm

from tests.zoo.registry import N_COLUMNS, Data, works


@works(predictors=5)
def normal_mixture(d: Data) -> None:
    """Three normal components."""
    w, mu = pm.Dirichlet("w", np.ones(3)), pm.Normal("mu", shape=3)
    pm.NormalMixture("y", w=w, mu=mu, sigma=1.0, observed=d.eta)


@works(predictors=2)
def mixture_of_regressions(d: Data) -> None:
    """A regression and outliers."""
    w, b = pm.Dirichlet("w", np.ones(2)), pm.Normal("b", shape=N_COLUMNS)
    parts = [pm.Normal.dist(d.X @ b, 1.0), pm.StudentT.dist(nu=3, mu=0.0, sigma=5.0)]
    pm.Mixture("y", w=w, comp_dists=parts, observed=d.eta)


@works(predictors=2)
def zero_inflated(d: Data) -> None:
    """Counts with excess zeros."""
    b, psi = pm.Normal("b", shape=N_COLUMNS), pm.Beta("psi", 1, 1)
    pm.ZeroInflatedPoisson("y", psi=psi, mu=pm.math.exp(d.X @ b), observed=d.counts())


@works(predictors=2)
def hurdle(d: Data) -> None:
    """Zeros apart from counts."""
    b, psi = pm.Normal("b", shape=N_COLUMNS), pm.Beta("psi", 1, 1)
    pm.HurdlePoisson("y", psi=psi, mu=pm.math.exp(d.X @ b), observed=d.counts())


@works(predictors=3)
def hurdle_with_dispersion(d: Data) -> None:
    """Zeros apart from counts that vary more than Poisson variables."""
    mu = pm.math.exp(d.X @ pm.Normal("b", shape=N_COLUMNS))
    shapes = {"psi": pm.Beta("psi", 1, 1), "alpha": pm.Exponential("alpha", 1)}
    pm.HurdleNegativeBinomial("y", mu=mu, **shapes, observed=d.counts())
