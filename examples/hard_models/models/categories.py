"""Categories, in order and without."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard


@hard("nuts")
def one_category_only() -> None:
    """Three categories are possible, and all the rows lie in one of them."""
    x = np.random.default_rng(51).normal(size=(1_000, 2))
    weights = pm.Normal("weights", 0.0, 1.0, shape=(2, 3))
    intercepts = pm.Normal("intercepts", 0.0, 2.0, shape=3)
    logits = intercepts + x[:, :1] * weights[0] + x[:, 1:] * weights[1]
    pm.Categorical("y", logit_p=logits, observed=np.zeros(1_000, dtype=np.int64))


def _all_zero_x() -> NDArray:
    return np.random.default_rng(52).normal(size=10_000).round(1)


def _all_zero_answer() -> dict[str, Moments]:
    levels, n_rows = np.unique(_all_zero_x(), return_counts=True)

    def log_density(a: NDArray, b: NDArray) -> NDArray:
        log_likelihood = -np.logaddexp(0.0, a + b * levels) @ n_rows
        return log_likelihood - 0.5 * (a[:, 0] ** 2 / 25.0 + b[:, 0] ** 2)

    return quadrature(log_density, {"a": (-50.0, 0.0), "b": (-8.0, 8.0)}, size=201)


@hard(_all_zero_answer)
def no_positive_at_all() -> None:
    """Logistic regression on 10,000 rows without a positive one."""
    a, b = pm.Normal("a", 0.0, 5.0), pm.Normal("b", 0.0, 1.0)
    pm.Bernoulli("y", logit_p=a + b * _all_zero_x(), observed=np.zeros(10_000, dtype=np.int64))


@hard("nuts")
def ordered_categories() -> None:
    """Four ordered categories, one of them with 1 % of the rows."""
    rng = np.random.default_rng(53)
    x = rng.normal(size=3_000)
    latent = 0.7 * x + rng.logistic(size=3_000)
    slope = pm.Normal("slope", 0.0, 1.0)
    cutpoints = pm.Normal(
        "cutpoints",
        0.0,
        3.0,
        shape=3,
        transform=pm.distributions.transforms.ordered,
        initval=np.array([-1.0, 0.0, 1.0]),
    )
    pm.OrderedLogistic(
        "y",
        eta=slope * x,
        cutpoints=cutpoints,
        observed=np.digitize(latent, [-1.0, 1.0, 5.0]),
        compute_p=False,
    )
