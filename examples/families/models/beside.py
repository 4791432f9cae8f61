"""Models written for mini-batches, and trees beside a regression."""

import numpy as np
import pymc as pm

from examples.families.models.data import N_ROWS, columns
from examples.families.models.generalized import linear
from examples.families.registry import family


@family()
def minibatch() -> None:
    """Linear regression written with pm.Minibatch and total_size."""
    rng, x, eta = columns(81)
    batch, y = pm.Minibatch(x, rng.normal(eta, 0.7), batch_size=200)
    sigma = pm.HalfNormal("sigma", 2.0)
    pm.Normal("y", linear(batch), sigma, observed=y, total_size=N_ROWS)


@family(beside="trees", needs="pymc_bart", settings={"steps_per_draw": 20})
def regression_trees() -> None:
    """Trees (pymc-bart) for 500 rows beside a linear regression, steps_per_draw=20."""
    import pymc_bart

    rng = np.random.default_rng(82)
    x, z = rng.uniform(0.0, 1.0, size=(500, 2)), rng.standard_normal((500, 3))
    y = rng.normal(np.sin(6.0 * x[:, 0]) + z @ [0.5, -0.3, 0.1], 0.5)
    trees = pymc_bart.BART("trees", x, y, m=20)
    b = pm.Normal("b", 0.0, 1.0, shape=3)
    pm.Normal("y", trees + z @ b, 0.5, observed=y)  # an unknown scale differs from run to run
