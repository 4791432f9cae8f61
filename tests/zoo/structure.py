"""How a model is put together: several likelihoods, potentials, minibatches, custom pieces."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.registry import N_COLUMNS, Data, works


@works(predictors=1)
def two_likelihoods(d: Data) -> None:
    """Two observed variables of the same rows."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Normal("y1", d.X @ b, 1.0, observed=d.eta)
    pm.Poisson("y2", pm.math.exp(d.X @ b), observed=d.counts())


@works(predictors=2)
def a_smaller_likelihood(d: Data) -> None:
    """A second observed variable with fewer rows."""
    b, s = pm.Normal("b", shape=N_COLUMNS), pm.HalfNormal("s")
    pm.Normal("y1", d.X @ b, s, observed=d.eta)
    pm.Normal("y2", b.sum(), s, observed=d.normal(11))


@works(predictors=1)
def an_observed_scalar(d: Data) -> None:
    """A second observed variable without rows."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Normal("y1", d.X @ b, 1.0, observed=d.eta)
    pm.Normal("total", b.sum(), 0.1, observed=0.3)


@works(predictors=1, likelihood=["lik"])
def likelihood_as_a_potential(d: Data) -> None:
    """A likelihood that must be named."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Potential("lik", pm.logp(pm.Normal.dist(d.X @ b, 1.0), d.eta))


@works(predictors=1)
def prior_as_a_potential(d: Data) -> None:
    """A penalty beside a likelihood."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Potential("ridge", -pt.sum(b**2))
    pm.Normal("y", d.X @ b, 1.0, observed=d.eta)


@works(predictors=1)
def minibatch(d: Data) -> None:
    """Full data behind pm.Minibatch."""
    X, y = pm.Minibatch(d.X, d.eta, batch_size=16)
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Normal("y", X @ b, 1.0, observed=y, total_size=d.n)


@works(predictors=1)
def dims_and_coords(d: Data) -> None:
    """Named dimensions and a Deterministic with one entry per row."""
    pm.modelcontext(None).add_coords({"row": np.arange(d.n), "column": list("abc")})
    X, b = pm.Data("X", d.X, dims=("row", "column")), pm.Normal("b", dims="column")
    mu = pm.Deterministic("mu", pt.sum(X * b, axis=1), dims="row")
    pm.Normal("y", mu, 1.0, observed=d.eta, dims="row")


@works(predictors=1)
def labelled(d: Data) -> None:
    """Written with pymc.dims."""
    import pymc.dims as pmd  # not above, because it warns when imported that it is experimental

    pm.modelcontext(None).add_coords({"row": np.arange(d.n), "column": list("abc")})
    X, y = pmd.Data("X", d.X, dims=("row", "column")), pmd.Data("yd", d.eta, dims="row")
    pmd.Normal("y", X.dot(pmd.Normal("b", dims="column")), 1.0, observed=y)


@works(predictors=1)
def custom_log_density(d: Data) -> None:
    """A distribution given by its log-density."""

    def log_density(value, mu):
        return -pt.abs(value - mu) - np.log(2.0)

    mu = d.X @ pm.Normal("b", shape=N_COLUMNS)
    pm.CustomDist("y", mu, logp=log_density, observed=d.eta)


@works(predictors=1)
def custom_random_graph(d: Data) -> None:
    """A distribution given by how it is drawn."""

    def draw(mu, size):
        return pt.exp(pm.Normal.dist(mu, 1.0, size=size))

    mu = d.X @ pm.Normal("b", shape=N_COLUMNS)
    pm.CustomDist("y", mu, dist=draw, observed=np.exp(d.eta))


@works(predictors=2)
def two_halves(d: Data) -> None:
    """Two computations joined end to end along the rows."""
    half = d.n // 2
    b, s = pm.Normal("b", shape=N_COLUMNS), pm.HalfNormal("s", shape=2)
    mu = pt.concatenate([d.X[:half] @ b, d.X[half:] @ (2 * b)])
    pm.Normal("y", mu, s[(np.arange(d.n) >= half).astype(int)], observed=d.eta)


@works(predictors=1)
def rows_set_and_added_to(d: Data) -> None:
    """Some rows are set, some are added to."""
    b, c = pm.Normal("b", shape=N_COLUMNS), pm.Normal("c")
    mu = d.X @ b
    mu = pt.set_subtensor(mu[np.array([1, 4, 6])], c)
    mu = pt.inc_subtensor(mu[:3], b)
    pm.Normal("y", mu, 1.0, observed=d.eta)
