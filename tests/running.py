"""Runs of step methods: without output and, unless told otherwise, in one process."""

import multiprocessing
import os
import pickle
from contextlib import contextmanager

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH

WANTED = os.environ.get("PYMC_AUSTERITY_START_METHODS", "").split()
START_METHODS = [m for m in multiprocessing.get_all_start_methods() if not WANTED or m in WANTED]
"""Ways of starting processes to test, the usual one of this system first."""

QUIET = {"progressbar": False, "compute_convergence_checks": False, "quiet": True}


def built(model, make=AusterityMH, **settings):
    """A step method for a model."""
    with model:
        return make(**settings)


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


def assert_moments(draws, mean, sd, at_least, slack=0.0, kurtosis=3.0):
    """Compare draws of one number, shape (n_chains, n_draws), with what is known of it.

    Means and standard deviations agree within four standard errors, those of the latter by the
    kurtosis of the posterior; the latter may differ by a share `slack` more.
    """
    draws = np.asarray(draws)
    ess, ess_of_spread = (float(az.ess(draws, method=method)) for method in ("bulk", "sd"))
    assert ess > at_least
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(ess)
    assert draws.std() == pytest.approx(sd, rel=2 * np.sqrt((kurtosis - 1) / ess_of_spread) + slack)


def assert_alike(run, expected, names, share, log_ratio):
    """Compare two posteriors: means in standard deviations, and logarithms of these."""
    for name in names:
        found, known = (idata.posterior[name] for idata in (run, expected))
        (mean, sd), (mean_0, sd_0) = (
            (x.mean(("chain", "draw")).values, x.std(("chain", "draw")).values)
            for x in (found, known)
        )
        assert (abs(mean - mean_0) < share * sd_0).all(), name
        assert (abs(np.log(sd / sd_0)) < log_ratio).all(), name


def chain_of(step, point, n_steps=60, between=lambda point: point):
    """Points that a step method visits without `pm.sample`, and their statistics.

    Points are raveled, shape (n_steps, d); `between` may replace a point by another one.
    """
    points, statistics = [], []
    for _ in range(n_steps):
        point, (stats,) = step.step(between(point))
        points.append(np.concatenate([np.ravel(value) for value in point.values()]))
        statistics.append(stats)
    return np.array(points), statistics


def walk(step, point, n_steps):
    """The points alone."""
    return chain_of(step, point, n_steps)[0]


def assert_goes_on(step, point):
    """A step method whose state is set again makes the same moves again."""
    state, moves = pickle.loads(pickle.dumps(step.sampling_state)), []
    for _ in range(2):
        step.sampling_state = state
        moves.append(walk(step, point, 15))
    np.testing.assert_array_equal(*moves)
    assert len(np.unique(moves[0], axis=0)) > 1


def assert_same_moves(steps, point, n_steps=20):
    """Step methods visit the same points with the same random numbers."""
    for step in steps:
        step.set_rng(np.random.default_rng(3))
    first, *others = (walk(step, point, n_steps) for step in steps)
    for other in others:
        np.testing.assert_array_equal(other, first)
    assert len(np.unique(first, axis=0)) > 1


@contextmanager
def refused_in_a_sentence(error, *words):
    """What is done inside is refused by one sentence that holds the words."""
    with pytest.raises(error) as caught:
        yield
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "\n" not in message and message.endswith(".")
