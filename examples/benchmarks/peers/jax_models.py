"""The same models for NumPyro; `subsample_size` is for HMCECS."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist


def coefficients(x):
    n_columns = x.shape[1]
    return numpyro.sample("beta", dist.Normal(jnp.zeros(n_columns), 1.0).to_event(1))


def plate(rows, subsample_size):
    return numpyro.plate("rows", len(rows["y"]), subsample_size=subsample_size)


def part(rows, name):
    """The rows of the mini-batch, or all of them."""
    return numpyro.subsample(rows[name], event_dim=rows[name].ndim - 1)


def logistic(rows, subsample_size=None):
    beta = coefficients(rows["x"])
    with plate(rows, subsample_size):
        logit = part(rows, "x") @ beta
        numpyro.sample("y", dist.Bernoulli(logits=logit), obs=part(rows, "y"))


def rare(rows, subsample_size=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 10.0))
    scales = jnp.full(rows["x"].shape[1], 2.0)
    beta = numpyro.sample("beta", dist.Normal(0.0, scales).to_event(1))
    with plate(rows, subsample_size):
        logit = intercept + part(rows, "x") @ beta
        numpyro.sample("y", dist.Bernoulli(logits=logit), obs=part(rows, "y"))


def saturation(rows, subsample_size=None):
    top = numpyro.sample("top", dist.LogNormal(1.0, 1.0))
    half = numpyro.sample("half", dist.LogNormal(1.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(5.0))
    with plate(rows, subsample_size):
        x = part(rows, "x")
        numpyro.sample("y", dist.Normal(top * x / (half + x), sigma), obs=part(rows, "y"))


def poisson(rows, subsample_size=None):
    beta = coefficients(rows["x"])
    with plate(rows, subsample_size):
        rate = part(rows, "exposure") * jnp.exp(part(rows, "x") @ beta)
        numpyro.sample("y", dist.Poisson(rate), obs=part(rows, "y"))


def student_t(rows, subsample_size=None):
    beta = coefficients(rows["x"])
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    nu = numpyro.sample("nu", dist.Gamma(2.0, 0.1))
    with plate(rows, subsample_size):
        mean = part(rows, "x") @ beta
        numpyro.sample("y", dist.StudentT(nu, mean, sigma), obs=part(rows, "y"))


def hierarchical(rows, subsample_size=None):
    center = numpyro.sample("center", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    alpha = numpyro.sample("alpha", dist.Normal(center, spread).expand([50]).to_event(1))
    beta = coefficients(rows["x"])
    with plate(rows, subsample_size):
        logit = alpha[part(rows, "group")] + part(rows, "x") @ beta
        numpyro.sample("y", dist.Bernoulli(logits=logit), obs=part(rows, "y"))


MODELS = {
    "logistic": logistic,
    "poisson": poisson,
    "student_t": student_t,
    "hierarchical": hierarchical,
    "rare": rare,
    "saturation": saturation,
}
