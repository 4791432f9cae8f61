"""Simulated predictors and responses."""

import numpy as np
from numpy.typing import NDArray

N_ROWS = 20_000


def columns(seed: int, n_columns: int = 4) -> tuple[np.random.Generator, NDArray, NDArray]:
    """Random numbers, standard normal columns, and a linear predictor of them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N_ROWS, n_columns))
    return rng, x, 0.3 + x @ np.linspace(0.5, -0.3, n_columns)


def coin(rng: np.random.Generator, logit: NDArray) -> NDArray:
    """One toss for each log-odds."""
    return rng.binomial(1, 1.0 / (1.0 + np.exp(-logit)))
