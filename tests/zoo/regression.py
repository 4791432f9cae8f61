"""Regressions: every way to write a linear predictor, every common likelihood."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.registry import N_CATEGORIES, N_COLUMNS, N_TIMES, Data, works


@works(predictors=2)
def linear(d: Data) -> None:
    """Covariates as a constant."""
    beta = pm.Normal("beta", 0, 1, shape=N_COLUMNS)
    pm.Normal("y", d.X @ beta, pm.HalfNormal("s"), observed=d.eta + d.normal(d.n))


@works(predictors=2)
def linear_with_data(d: Data) -> None:
    """Covariates and observations as pm.Data, with a symbolic shape."""
    X, y = pm.Data("X", d.X), pm.Data("yd", d.eta + d.normal(d.n))
    beta = pm.Normal("beta", 0, 1, shape=N_COLUMNS)
    pm.Normal("y", X @ beta, pm.HalfNormal("s"), observed=y, shape=X.shape[0])


@works(predictors=2)
def linear_term_by_term(d: Data) -> None:
    """Scalar coefficients times columns."""
    b0, b1, b2 = (pm.Normal(name) for name in ("b0", "b1", "b2"))
    mu = b0 + b1 * d.X[:, 0] + b2 * d.X[:, 1] ** 2
    pm.Normal("y", mu, pm.Exponential("s", 1), observed=d.eta)


@works(predictors=1)
def linear_row_vector(d: Data) -> None:
    """A row of coefficients times the transposed covariates."""
    b = pm.Normal("b", shape=(1, N_COLUMNS))
    pm.Normal("y", pt.dot(b, d.X.T)[0], 1.0, observed=d.eta)


@works(predictors=1)
def linear_flattened(d: Data) -> None:
    """A column of results, flattened."""
    b = pm.Normal("b", shape=(N_COLUMNS, 1))
    pm.Normal("y", pt.dot(d.X, b).flatten(), 1.0, observed=d.eta)


@works(predictors=1)
def linear_column(d: Data) -> None:
    """Observations as a matrix with one column."""
    b = pm.Normal("b", shape=(N_COLUMNS, 1))
    pm.Normal("y", d.X @ b, 1.0, observed=d.eta[:, None])


@works(predictors=1)
def stacked_columns(d: Data) -> None:
    """Columns computed one by one and stacked."""
    b = pm.Normal("b", shape=N_COLUMNS)
    columns = [b[0] * d.X[:, 0], b[1] * d.X[:, 1], b[2] + 0 * d.X[:, 2]]
    pm.Normal("y", pt.stack(columns, axis=1).sum(1), 1.0, observed=d.eta)


@works(predictors=5)
def einsum(d: Data) -> None:
    """A contraction of three operands."""
    Z = d.normal(d.n, N_COLUMNS, 2)
    b, c = pm.Normal("b", shape=N_COLUMNS), pm.Normal("c", shape=2)
    pm.Normal("y", pt.einsum("nij,i,j->n", Z, b, c), 1.0, observed=d.eta)


@works(predictors=1)
def standardized_in_the_model(d: Data) -> None:
    """Covariates centered, scaled and joined with an intercept by the model."""
    X = pm.Data("X", d.X)
    scaled = (X - X.mean(0)) / X.std(0)
    design = pt.concatenate([pt.ones((X.shape[0], 1)), scaled], axis=1)
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Normal("y", design @ pt.concatenate([[0.3], b]), 1.0, observed=d.eta)


@works(predictors=12)
def neural_network(d: Data) -> None:
    """A hidden layer."""
    W, v = pm.Normal("W", shape=(N_COLUMNS, 6)), pm.Normal("v", shape=6)
    pm.Bernoulli("y", logit_p=pt.tanh(d.X @ W) @ v, observed=d.binary())


@works(predictors=1)
def logistic(d: Data) -> None:
    """Small integers as observations."""
    beta = pm.Normal("beta", shape=N_COLUMNS)
    y = (d.rng.random(d.n) < 1 / (1 + np.exp(-d.eta))).astype("int8")
    pm.Bernoulli("y", logit_p=pm.math.dot(d.X, beta), observed=y)


@works(predictors=1)
def logistic_summed(d: Data) -> None:
    """Truth values as observations, a sum instead of a product."""
    beta = pm.Normal("beta", shape=N_COLUMNS)
    p = pm.math.sigmoid(pt.sum(d.X * beta, axis=-1))
    pm.Bernoulli("y", p=p, observed=d.rng.random(d.n) < 0.5)


@works(predictors=1)
def poisson_exposure(d: Data) -> None:
    """Counts with exposures."""
    beta = pm.Normal("beta", shape=N_COLUMNS)
    exposure = d.rng.uniform(1, 3, d.n)
    pm.Poisson("y", mu=exposure * pm.math.exp(pt.dot(d.X, beta)), observed=d.counts(2))


@works(predictors=2)
def negative_binomial(d: Data) -> None:
    """Overdispersed counts."""
    beta, a = pm.Normal("beta", shape=N_COLUMNS), pm.Exponential("a", 1)
    pm.NegativeBinomial("y", mu=pm.math.exp(d.X @ beta), alpha=a, observed=d.counts(2))


@works(predictors=1)
def binomial(d: Data) -> None:
    """A number of trials per row."""
    n = d.rng.integers(1, 9, d.n)
    beta = pm.Normal("beta", shape=N_COLUMNS)
    pm.Binomial("y", n=n, logit_p=d.X @ beta, observed=d.rng.binomial(n, 0.4))


@works(predictors=4)
def categorical_softmax(d: Data) -> None:
    """Probabilities by a softmax over categories."""
    A, c = pm.Normal("A", shape=(N_COLUMNS, N_CATEGORIES)), pm.Normal("c", shape=N_CATEGORIES)
    pm.Categorical("y", p=pm.math.softmax(c + d.X @ A, axis=-1), observed=d.categories())


@works(predictors=4)
def categorical_logits(d: Data) -> None:
    """Logits of categories."""
    A = pm.Normal("A", shape=(N_COLUMNS, N_CATEGORIES))
    pm.Categorical("y", logit_p=d.X @ A, observed=d.categories())


@works(predictors=4)
def ordered_logistic(d: Data) -> None:
    """Ordered categories with unknown cutpoints."""
    ordered = pm.distributions.transforms.ordered
    beta = pm.Normal("beta", shape=N_COLUMNS)
    cut = pm.Normal("cut", [-1, 0, 1], 1, shape=3, transform=ordered, initval=[-1, 0, 1])
    y = d.categories()
    pm.OrderedLogistic("y", eta=d.X @ beta, cutpoints=cut, observed=y, compute_p=False)


@works(predictors=1)
def ordered_probit(d: Data) -> None:
    """Ordered categories with known cutpoints."""
    b = pm.Normal("b", shape=N_COLUMNS)
    cutpoints = np.array([-1.0, 0.0, 1.0])
    y = d.categories()
    pm.OrderedProbit("y", eta=d.X @ b, cutpoints=cutpoints, observed=y, compute_p=False)


@works(predictors=3)
def student_t(d: Data) -> None:
    """Heavy tails."""
    beta, s, nu = pm.Normal("beta", shape=N_COLUMNS), pm.HalfNormal("s"), pm.Gamma("nu", 2, 0.1)
    pm.StudentT("y", nu=nu, mu=d.X @ beta, sigma=s, observed=d.eta)


@works(predictors=2)
def gamma(d: Data) -> None:
    """Positive responses."""
    beta, a = pm.Normal("beta", shape=N_COLUMNS), pm.Exponential("a", 1)
    y = d.rng.gamma(2, 1, d.n)
    pm.Gamma("y", alpha=a, beta=a / pm.math.exp(d.X @ beta), observed=y)


@works(predictors=2)
def beta_regression(d: Data) -> None:
    """Shares between zero and one."""
    beta, k = pm.Normal("beta", shape=N_COLUMNS), pm.Exponential("k", 0.1)
    mu = pm.math.sigmoid(d.X @ beta)
    pm.Beta("y", alpha=mu * k, beta=(1 - mu) * k, observed=d.rng.beta(2, 2, d.n))


@works(predictors=2)
def lognormal_skew_vonmises(d: Data) -> None:
    """Three likelihoods of the same rows."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.LogNormal("y", d.X @ b, 1.0, observed=np.exp(d.eta))
    pm.SkewNormal("y2", mu=d.X @ b, sigma=1.0, alpha=b[0], observed=d.eta)
    pm.VonMises("y3", mu=d.X @ b, kappa=2.0, observed=np.clip(d.eta, -3, 3))


@works(predictors=1)
def betabinomial_exgaussian(d: Data) -> None:
    """Two likelihoods of the same rows, discrete and continuous."""
    b = pm.Normal("b", shape=N_COLUMNS)
    y = d.rng.binomial(5, 0.5, d.n)
    pm.BetaBinomial("y", alpha=pm.math.exp(d.X @ b), beta=1.0, n=5, observed=y)
    pm.ExGaussian("y2", mu=d.X @ b, sigma=1.0, nu=1.0, observed=d.eta)


@works(predictors=2)
def asymmetric_laplace(d: Data) -> None:
    """A scale per row."""
    b = pm.Normal("b", shape=N_COLUMNS)
    weight = d.rng.uniform(0.5, 2, d.n)
    pm.AsymmetricLaplace("y", kappa=1.2, mu=d.X @ b, b=weight, observed=d.eta)


@works(predictors=1)
def mixed_precision(d: Data) -> None:
    """Data of several small types."""
    b = pm.Normal("b", shape=N_COLUMNS)
    pm.Normal("y", d.X.astype("float32") @ b, 1.0, observed=d.eta.astype("float32"))
    n = d.rng.integers(3, 6, d.n).astype("int16")
    y = d.rng.integers(0, 3, d.n).astype("uint8")
    pm.Binomial("y2", n=n, p=0.3 + 0 * b[0], observed=y)


@works(predictors=5)
def repeated_measures(d: Data) -> None:
    """Observations as rows by times."""
    a, t = pm.Normal("a"), pm.Normal("t", shape=N_TIMES)
    mu = a + d.X @ np.ones(N_COLUMNS)[:, None] + t
    pm.Normal("y", mu, 1.0, observed=d.normal(d.n, N_TIMES))


@works(predictors=5, axis=1)
def rows_on_the_second_axis(d: Data) -> None:
    """Observations as times by rows."""
    b, t = pm.Normal("b", shape=N_COLUMNS), pm.Normal("t", shape=N_TIMES)
    pm.Normal("y", t[:, None] + d.X @ b, 1.0, observed=d.normal(N_TIMES, d.n))
