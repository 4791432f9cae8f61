"""Variables with one entry per row: subsampling does not make a step on them cheap."""

import pymc as pm

from tests.zoo.registry import Data, local


@local(predictors=1)
def random_effects_by_row(d: Data) -> None:
    """Overdispersion by a latent variable per row."""
    effect = pm.Normal("effect", pm.Normal("a"), 1.0, shape=d.n)
    pm.Poisson("y", pm.math.exp(effect), observed=d.counts())


@local(predictors=1)
def latent_random_walk(d: Data) -> None:
    """A latent series observed with noise."""
    start = pm.Normal.dist(0, 1)
    f = pm.GaussianRandomWalk("f", sigma=pm.HalfNormal("s"), init_dist=start, shape=d.n)
    pm.Normal("y", f, 1.0, observed=d.eta)


@local(predictors=1)
def latent_process_with_fixed_covariance(d: Data) -> None:
    """A Gaussian process with known hyperparameters: every row reads all of a latent vector."""
    f = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, 1.0)).prior("f", X=d.X[:, :1])
    pm.Normal("y", f, 1.0, observed=d.eta)
