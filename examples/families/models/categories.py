"""Ordered and unordered categories."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from examples.families.models.data import N_ROWS, columns
from examples.families.registry import family


@family()
def ordinal() -> None:
    """Ordered categories, logistic, unknown cut points."""
    rng, x, eta = columns(21)
    latent = eta + rng.logistic(size=N_ROWS)
    cuts = pm.Normal(
        "cuts", 0.0, 3.0, shape=3, transform=pm.distributions.transforms.ordered,
        initval=[-1.0, 0.0, 1.0],
    )  # fmt: skip
    predictor = x @ pm.Normal("b", 0.0, 2.0, shape=x.shape[1])
    pm.OrderedLogistic("y", eta=predictor, cutpoints=cuts, observed=np.digitize(latent, [-1, 0, 1]))


@family()
def softmax() -> None:
    """Softmax regression, four categories."""
    rng, x, _ = columns(22)
    logits = x @ rng.normal(0.0, 0.5, size=(x.shape[1], 4))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    free = pm.Normal("b", 0.0, 1.0, shape=(x.shape[1] + 1, 3))
    b = pt.concatenate([pt.zeros((x.shape[1] + 1, 1)), free], axis=1)
    pm.Categorical("y", logit_p=np.c_[np.ones(N_ROWS), x] @ b, observed=y)


@family()
def multinomial() -> None:
    """Counts of four categories (multinomial), softmax of predictors."""
    rng, x, _ = columns(23)
    logits = x @ rng.normal(0.0, 0.5, size=(x.shape[1], 4))
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = rng.multinomial(10, shares)
    free = pm.Normal("b", 0.0, 1.0, shape=(x.shape[1] + 1, 3))
    b = pt.concatenate([pt.zeros((x.shape[1] + 1, 1)), free], axis=1)
    p = pm.math.softmax(np.c_[np.ones(N_ROWS), x] @ b, axis=1)
    pm.Multinomial("y", n=10, p=p, observed=y)
