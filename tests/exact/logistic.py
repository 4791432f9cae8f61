"""A small logistic regression whose rows have known bounds."""

import math

import numpy as np
from scipy import special

from pymc_austerity.exact import Grid, decide, decide_by_fireflies, group_rows, nearest_directions

LOGISTIC = math.sqrt(3) / 18
GROUPINGS = [{}, {"n_directions": 0}, {"n_directions": 6}]


class Logistic:
    """Logistic regression about its mode, in whitened coordinates; prior N(0, I)."""

    def __init__(self, n_rows, n_columns, seed=0, n_directions=None):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n_rows, n_columns))
        x[:, 0] = 1.0
        truth = rng.normal(size=n_columns) / math.sqrt(n_columns)
        y = (rng.random(n_rows) < special.expit(x @ truth)).astype(float)
        mode = np.zeros(n_columns)
        for _ in range(12):
            p = special.expit(x @ mode)
            precision = (x.T * (p * (1 - p))) @ x + np.eye(n_columns)
            mode = mode + np.linalg.solve(precision, x.T @ (y - p) - mode)
        root = np.linalg.inv(np.linalg.cholesky(precision)).T
        z = x @ root
        radii = np.array([20.0])
        constants = LOGISTIC * np.linalg.norm(z, axis=1)[None] ** 3
        vectors, directions = None, None
        if n_directions == 0:
            vectors = np.eye(1, n_columns)
        elif n_directions is not None:
            directions = nearest_directions(z, constants[0], n_directions, rng)
            vectors = directions.vectors
        grid = Grid.of(constants, radii, vectors, by_direction=directions is not None)
        labels, self.groups = group_rows(constants, grid, directions)
        order = np.argsort(labels, kind="stable")
        self.z, self.y, self.eta = z[order], y[order], (x @ mode)[order]
        self.n_columns = n_columns

    def remainders(self, u, rows=slice(None)):
        z, y, eta = self.z[rows], self.y[rows], self.eta[rows]
        p, s = special.expit(eta), z @ u
        value = y * s - np.logaddexp(0, eta + s) + np.logaddexp(0, eta)
        return value - (y - p) * s + 0.5 * p * (1 - p) * s**2

    def decide(self, u, v, rng, log_ratio=0.0, inflation=1.0):
        def residuals(rows):
            return self.remainders(v, rows) - self.remainders(u, rows)

        return decide(residuals, u, v, log_ratio, self.groups, rng, inflation=inflation)

    def decide_by_fireflies(self, u, v, rng, log_ratio=0.0):
        now, then = (lambda rows, at=at: self.remainders(at, rows) for at in (u, v))
        return decide_by_fireflies(now, then, u, v, log_ratio, self.groups, rng)
