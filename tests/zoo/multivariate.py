"""Rows that are vectors."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.registry import N_CATEGORIES, N_COLUMNS, Data, works


@works(predictors=5)
def multivariate_normal(d: Data) -> None:
    """One mean and covariance for all rows."""
    mu, sd = pm.Normal("mu", shape=2), pm.Exponential.dist(1.0, shape=2)
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=sd)
    pm.MvNormal("y", mu=mu, chol=chol, observed=d.normal(d.n, 2))


@works(predictors=4)
def multivariate_regression(d: Data) -> None:
    """A mean per row."""
    B, s = pm.Normal("B", shape=(N_COLUMNS, 2)), pm.HalfNormal("s", shape=2)
    pm.MvNormal("y", mu=d.X @ B, cov=pt.diag(s**2), observed=d.normal(d.n, 2))


@works(predictors=4)
def multinomial(d: Data) -> None:
    """Probabilities per row, one total."""
    A = pm.Normal("A", shape=(N_COLUMNS, N_CATEGORIES))
    y = d.multinomial(np.full(d.n, 10))
    pm.Multinomial("y", n=10, p=pm.math.softmax(d.X @ A, axis=-1), observed=y)


@works(predictors=3)
def multinomial_totals(d: Data) -> None:
    """A total per row, one vector of probabilities."""
    n = d.rng.integers(5, 9, d.n)
    p = pm.Dirichlet("p", np.ones(N_CATEGORIES))
    pm.Multinomial("y", n=n, p=p, observed=d.multinomial(n))


@works(predictors=4)
def dirichlet_multinomial(d: Data) -> None:
    """A total and concentrations per row."""
    n = d.rng.integers(5, 9, d.n)
    A = pm.Normal("A", shape=(N_COLUMNS, N_CATEGORIES))
    pm.DirichletMultinomial("y", n=n, a=pm.math.exp(d.X @ A), observed=d.multinomial(n))


@works(predictors=4)
def dirichlet(d: Data) -> None:
    """Compositions."""
    A = pm.Normal("A", shape=(N_COLUMNS, N_CATEGORIES))
    y = d.rng.dirichlet(np.ones(N_CATEGORIES), size=d.n)
    pm.Dirichlet("y", a=pm.math.exp(d.X @ A), observed=y)
