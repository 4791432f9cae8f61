"""The model of all benchmarks, an ordinary logistic regression, and what samples it."""

import numpy as np
import pymc as pm

from pymc_austerity import AusterityMH
from pymc_austerity.proposals import RandomWalkProposal


def logistic_data(n_rows: int, n_columns: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal covariates (float64) and outcomes (int8)."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n_rows, n_columns))
    coefficients = rng.normal(scale=0.3, size=n_columns)
    y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-(x @ coefficients)))).astype(np.int8)
    return x, y


def logistic_regression(x: np.ndarray, y: np.ndarray) -> pm.Model:
    """Logistic regression, written as one does."""
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=x.shape[1])
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def papers_algorithm(epsilon: float = 0.05, batch_size: int = 500, **settings) -> AusterityMH:
    """The test on uniform mini-batches, for the model on the context stack."""
    its = {"epsilon": epsilon, "proposal": RandomWalkProposal(), **settings}
    if "test" in settings:
        del its["epsilon"]
    return AusterityMH(batch_size=batch_size, control_variates=None, sampling="windows", **its)
