"""Models in which the likelihood of one row needs other rows."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from tests.zoo.registry import N_COLUMNS, N_TIMES, Data, refused


@refused("Cholesky")
def latent_process(d: Data) -> None:
    """A Gaussian process with unknown hyperparameters."""
    covariance = pm.gp.cov.ExpQuad(1, pm.HalfNormal("scale", initval=1.0))
    f = pm.gp.Latent(cov_func=covariance).prior("f", X=d.X[:, :1])
    pm.Normal("y", f, 1.0, observed=d.eta)


@refused("one draw of MvNormal")
def marginal_process(d: Data) -> None:
    """A Gaussian process integrated out."""
    process = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, pm.HalfNormal("scale")))
    process.marginal_likelihood("y", X=d.X[:, :1], y=d.eta, sigma=0.5)


@refused("one draw of AutoRegressive")
def autoregression(d: Data) -> None:
    """An autoregressive series."""
    start = pm.Normal.dist(0, 1)
    rho = pm.Normal("rho", shape=1)
    pm.AR("y", rho=rho, sigma=1.0, init_dist=start, observed=d.eta)


@refused("one draw of RandomWalk")
def random_walk(d: Data) -> None:
    """A random walk."""
    start = pm.Normal.dist(0, 1)
    pm.GaussianRandomWalk("y", sigma=pm.HalfNormal("s"), init_dist=start, observed=d.eta)


@refused("cumulative sum")
def cumulated_innovations(d: Data) -> None:
    """A random walk by a cumulative sum."""
    pm.Normal("y", pt.cumsum(pm.Normal("e", shape=d.n)), 1.0, observed=d.eta)


@refused("one draw of MvNormal")
def normal_across_rows(d: Data) -> None:
    """A covariance among all rows."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.MvNormal("y", mu=d.X @ b, cov=np.eye(d.n), observed=d.eta)


@refused("all 53 rows")
def centered_predictor(d: Data) -> None:
    """The mean of all linear predictors is subtracted: right by row, but a pass over the data."""
    mu = d.X @ pm.Normal("b", shape=N_COLUMNS)
    pm.Normal("y", mu - mu.mean(), 1.0, observed=d.eta)


@refused("all 53 rows")
def mean_of_other_rows(d: Data) -> None:
    """The mean of nearly all linear predictors is added."""
    b, rho = pm.Normal("b", shape=N_COLUMNS), pm.Normal("rho")
    mu = d.X @ b
    pm.Normal("y", mu + rho * mu[:-1].mean(), 1.0, observed=d.eta)


@refused("softmax")
def softmax_over_rows(d: Data) -> None:
    """A softmax over all rows."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Normal("y", pm.math.softmax(d.X @ b), 1.0, observed=d.eta)


@refused("sort")
def ranks(d: Data) -> None:
    """A likelihood of sorted predictors."""
    mu = d.X @ pm.Normal("b", shape=N_COLUMNS)
    pm.CustomDist("y", mu, logp=lambda value, mu: pt.sort(mu) - value, observed=d.eta)


@refused("loop")
def loop_with_memory(d: Data) -> None:
    """A scan that carries a state from row to row."""
    states = pytensor.scan(
        lambda x, state, a: pt.tanh(a * state + x),
        sequences=[pt.as_tensor(d.X[:, 0])],
        outputs_info=[pt.zeros((), dtype=d.X.dtype)],
        non_sequences=[pm.Normal("a")],
        return_updates=False,
    )
    pm.Normal("y", states, 1.0, observed=d.eta)


@refused("loop")
def loop_over_time(d: Data) -> None:
    """A scan over time that carries the states of all rows."""
    states = pytensor.scan(
        lambda x, state, a: pt.tanh(a * state + x),
        sequences=[pt.as_tensor(d.normal(N_TIMES, d.n))],
        outputs_info=[pt.zeros(d.n, dtype=d.X.dtype)],
        non_sequences=[pm.Normal("a")],
        return_updates=False,
    )
    pm.Normal("y", states.T, 1.0, observed=d.normal(d.n, N_TIMES))


@refused("one draw of Multinomial")
def one_multinomial(d: Data) -> None:
    """All observations are one draw."""
    y = d.rng.multinomial(100, np.ones(d.n) / d.n)
    pm.Multinomial("y", n=100, p=pm.math.softmax(pm.Normal("b", shape=d.n)), observed=y)


@refused("one draw of CAR")
def spatial(d: Data) -> None:
    """A conditional autoregression over all rows."""
    W = np.diag(np.ones(d.n - 1), 1) + np.diag(np.ones(d.n - 1), -1)
    alpha = pm.Uniform("alpha", 0, 1)
    pm.CAR("y", mu=np.zeros(d.n), W=W, alpha=alpha, tau=1.0, observed=d.eta)


class Simulator(pytensor.graph.Op):
    """Log-densities from a program that PyTensor cannot look into."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def make_node(self, theta):
        output = pt.TensorType(dtype=theta.dtype, shape=(len(self.y),))()
        return pytensor.graph.Apply(self, [pt.as_tensor(theta)], [output])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = (-0.5 * (self.y - self.X @ inputs[0]) ** 2).astype(self.X.dtype)


@refused("Simulator")
def black_box(d: Data) -> None:
    """A likelihood by an operation of the user's own."""
    simulate = Simulator(d.X, d.eta)
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.CustomDist("y", b, logp=lambda value, b: simulate(b) + 0 * value, observed=d.eta)
