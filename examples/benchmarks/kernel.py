"""The compiled row function, against a kernel written by hand for this one model."""

import math

import numba
import numpy as np

from examples.benchmarks.models import logistic_data, logistic_regression, papers_algorithm
from examples.benchmarks.report import Measurement
from examples.benchmarks.timing import microseconds_each

TITLE = "row differences of 500 x 20 logistic rows"
N_ROWS = 500


@numba.njit(fastmath=True)
def by_hand(proposed, current, x, y):
    """One pass over the rows; every row is read once for both points."""
    differences = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        new = old = 0.0
        for j in range(x.shape[1]):
            new += x[i, j] * proposed[j]
            old += x[i, j] * current[j]
        sign = 1.0 - 2.0 * y[i]
        differences[i] = softplus(sign * old) - softplus(sign * new)
    return differences


@numba.njit(fastmath=True)
def softplus(z):
    """Log of 1 + exp(z) without overflow."""
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def measure(n_calls: int) -> list[Measurement]:
    """Time of both on the same rows in the cache."""
    x, y = logistic_data(20_000)
    with logistic_regression(x, y):
        step = papers_algorithm()
    block = step.target.sampling.draw.source.window(0, N_ROWS)
    rng = np.random.default_rng(1)
    current, proposed = 0.3 * rng.standard_normal((2, 20))
    x, y = block if block[0].ndim == 2 else block[::-1]
    np.testing.assert_allclose(
        step.target.sampling.function(proposed, current, *block),
        by_hand(proposed, current, x, y),
    )
    functions = {
        "compiled": lambda: step.target.sampling.function(proposed, current, *block),
        "by hand": lambda: by_hand(proposed, current, x, y),
    }
    time = microseconds_each(functions, [()] * n_calls)
    return [
        Measurement("compiled from the model", time["compiled"], "µs"),
        Measurement("written by hand with numba", time["by hand"], "µs"),
        Measurement("compiled to written by hand", time["compiled"] / time["by hand"], bar=1.3),
    ]
