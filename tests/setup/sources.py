"""Models on a few example rows, and where all rows are."""

import numpy as np
import pymc as pm

N_EXAMPLE = 30


class Recorded:
    """An array as a source that keeps a record of what is read."""

    block_length = None

    def __init__(self, array):
        self.array = np.asarray(array)
        self.n_rows, self.row_shape = len(self.array), self.array.shape[1:]
        self.dtype = self.array.dtype
        self.longest, self.n_read = 0, 0

    def read(self, start, stop):
        self.longest, self.n_read = max(self.longest, stop - start), self.n_read + stop - start
        return np.array(self.array[start:stop], order="C")

    def refuse_if_changed(self):
        pass


def rows_of_regression(n_rows, seed=1, *, by_time=False):
    """A logistic regression with levels; with `by_time`, its data drift from row to row."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2)).astype(np.float32)
    level = rng.integers(0, 3, n_rows).astype(np.int8)
    if by_time:
        x = x[np.argsort(x[:, 0])]
        level = np.sort(level)
    eta = x @ [0.5, -0.3] + np.array([-0.4, 0.0, 0.4])[level]
    return {"x": x, "level": level, "y": rng.random(n_rows) < 1.0 / (1.0 + np.exp(-eta))}


def logistic(data, n_rows=N_EXAMPLE):
    """The model on the first rows."""
    with pm.Model() as model:
        slopes = pm.Normal("slopes", shape=2)
        effects = pm.Normal("effects", shape=3)
        x, level = pm.Data("x", data["x"][:n_rows]), pm.Data("level", data["level"][:n_rows])
        pm.Bernoulli("y", logit_p=effects[level] + x @ slopes, observed=data["y"][:n_rows])
    return model
