"""Runs of step methods: without output and, unless told otherwise, in one process."""

import numpy as np
import pymc as pm

QUIET = {"progressbar": False, "compute_convergence_checks": False, "quiet": True}


def sample(step, model, **settings):
    """Draws of a short run with a fixed seed; settings are those of `pm.sample`."""
    defaults = {"draws": 60, "tune": 60, "chains": 2, "cores": 1, "random_seed": 3}
    with model:
        return pm.sample(step=step, **(defaults | QUIET | settings))


def draws_of(idata):
    """Draws of every variable, shape (n_chains, n_draws, ...)."""
    return {name: values.values for name, values in idata.posterior.items()}


def assert_same_draws(first, second):
    """Compare two runs, draw by draw."""
    first, second = draws_of(first), draws_of(second)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])


def walk(step, point, n_steps):
    """Points that a step method visits without `pm.sample`, raveled, shape (n_steps, d)."""
    points = []
    for _ in range(n_steps):
        point, _ = step.step(point)
        points.append(np.concatenate([np.ravel(value) for value in point.values()]))
    return np.array(points)
