"""Rows in an order: lags, change points, knots, loops without memory, smooth functions."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from tests.zoo.registry import N_COLUMNS, Data, works


@works(predictors=3)
def switchpoint(d: Data) -> None:
    """A discrete change point."""
    tau = pm.DiscreteUniform("tau", 0, d.n)
    early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
    rate = pm.math.switch(tau >= np.arange(d.n), early, late)
    pm.Poisson("y", rate, observed=d.counts())


@works(predictors=2)
def autoregression_on_data(d: Data) -> None:
    """The lag of the observations is data like any other."""
    y = pm.Data("yd", d.eta)
    pm.Normal("y", pm.Uniform("rho", -1, 1) * y[:-1], pm.HalfNormal("s"), observed=d.eta[1:])


@works(predictors=3)
def lag_of_an_effect(d: Data) -> None:
    """The linear predictor of the row before, recomputed."""
    b, rho = pm.Normal("b", shape=N_COLUMNS), pm.Normal("rho")
    effect = d.X @ b
    lagged = pt.concatenate([[0.0], effect[:-1]])
    pm.Normal("y", effect + rho * lagged, 1.0, observed=d.eta)


@works(predictors=1)
def interpolation(d: Data) -> None:
    """A function between fixed knots."""
    knots = np.linspace(-4, 4, 9)
    x = np.clip(d.X[:, 0], -3.9, 3.9)
    j = np.searchsorted(knots, x) - 1
    w = (x - knots[j]) / (knots[j + 1] - knots[j])
    f = pm.Normal("f", shape=9)
    pm.Normal("y", f[j] * (1 - w) + f[j + 1] * w, 1.0, observed=d.eta)


@works(predictors=5)
def unknown_knots(d: Data) -> None:
    """A step function with unknown steps."""
    ordered = pm.distributions.transforms.ordered
    knots = pm.Normal("knots", [-1.0, 1.0], shape=2, transform=ordered, initval=[-1.0, 1.0])
    f = pm.Normal("f", shape=3)
    pm.Normal("y", f[pt.searchsorted(knots, d.X[:, 0])], 1.0, observed=d.eta)


@works(predictors=1)
def loop_without_memory(d: Data) -> None:
    """A scan whose steps do not see each other."""
    b = pm.Normal("b", shape=N_COLUMNS)
    mu = pytensor.scan(
        lambda x, b: pt.dot(x, b),
        sequences=[pt.as_tensor(d.X)],
        non_sequences=[b],
        return_updates=False,
    )
    pm.Normal("y", mu, 1.0, observed=d.eta)


@works(predictors=10)
def smooth_function(d: Data) -> None:
    """A Gaussian process by basis functions."""
    scale, s = pm.InverseGamma("scale", 3, 1), pm.HalfNormal("s")
    covariance = s**2 * pm.gp.cov.Matern52(1, scale)
    f = pm.gp.HSGP(m=[8], c=1.5, cov_func=covariance).prior("f", X=d.X[:, :1])
    pm.Normal("y", f, 1.0, observed=d.eta)
