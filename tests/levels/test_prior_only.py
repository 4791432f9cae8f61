"""Moves of what no row reads leave its distribution given the rest invariant."""

import numpy as np
import pytest

from pymc_austerity.levels import PriorOnlyEntries
from pymc_austerity.proposals import GaussianApproximation
from tests.references import mean_and_error


def normal(n_entries):
    """Independent normal entries with means that are levels, beside ten levels that stay."""
    sds = np.linspace(0.5, 2.0, n_entries)

    def gradient(theta):
        z = (theta[:n_entries] - theta[n_entries]) / sds
        slope = np.zeros(theta.size)
        slope[:n_entries] = -z / sds
        return np.asarray(-0.5 * z @ z), slope

    return entries_of(gradient, n_entries), sds


def entries_of(gradient, n_entries, scaled=(), components=None):
    """The first entries of a density, with a gradient."""

    def row_free_part(proposed, current):
        return float(gradient(proposed)[0] - gradient(current)[0])

    about = GaussianApproximation(np.zeros(n_entries), np.eye(n_entries))
    scaled = np.array(scaled, dtype=np.intp)
    components = components or (np.arange(n_entries),)
    its = about, row_free_part, gradient, scaled, components
    return PriorOnlyEntries(np.arange(n_entries), *its)


def walked(untouched, theta, n_steps, rng):
    state, points = untouched.init(), []
    for step in range(1_000 + n_steps):
        if step == 1_000:
            state = untouched.freeze(state)
        moved, state = untouched.move(
            theta, state, rng, tuning=step < 1_000, apart=np.zeros_like(theta)
        )
        theta = moved.point
        points.append(theta)
    return np.array(points[1_000:])


@pytest.mark.parametrize("n_entries", [2, 3, 12])
def test_follow_their_distribution_given_the_rest(n_entries):
    untouched, sds = normal(n_entries)
    theta = np.zeros(n_entries + 3)
    theta[n_entries] = 1.5
    points = walked(untouched, theta, 8_000, np.random.default_rng(1))
    assert (points[:, n_entries:] == theta[n_entries:]).all()
    z = (points[:, :n_entries] - 1.5) / sds
    for values, expected in ((z, 0.0), (z**2, 1.0)):
        mean, error = mean_and_error(values)
        assert (abs(mean - expected) < 5.0 * error).all()
    assert untouched.are_few is (n_entries == 2)


def test_independent_entries_take_steps_of_their_own():
    """Heavy tails of one do not keep the others from moving."""

    def gradient(theta):
        x, y, z = theta[:3]
        value = -2.0 * np.log1p(x**2 / 1e-6) - 0.5 * y**2 - 0.5 * z**2
        return np.asarray(value), np.array([-4.0 * x / (1e-6 + x**2), -y, -z, 0.0])

    untouched = entries_of(gradient, 3, components=tuple(np.arange(3)[:, None]))
    points = walked(untouched, np.zeros(4), 4_000, np.random.default_rng(3))
    for values in (points[:, 1], points[:, 2]):
        mean, error = mean_and_error(values[:, None])
        assert abs(mean) < 5.0 * error
        assert error < 0.08


def funnel(n):
    """Normal entries whose common scale is the exponential of another one: Neal's funnel."""

    def gradient(theta):
        log_scale, x = theta[0], theta[1 : n + 1]
        squares = x @ x * np.exp(-2.0 * log_scale)
        value = -0.5 * squares - n * log_scale - 0.5 * log_scale**2
        slope = np.zeros(theta.size)
        slope[0] = squares - n - log_scale
        slope[1 : n + 1] = -x * np.exp(-2.0 * log_scale)
        return np.asarray(value), slope

    return entries_of(gradient, n + 1, range(1, n + 1))


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [7, 11])
def test_a_funnel_is_straightened(n):
    points = walked(funnel(n), np.zeros(n + 2), 8_000, np.random.default_rng(2))
    log_scale = points[:, 0]
    z = points[:, 1 : n + 1] * np.exp(-log_scale)[:, None]
    for values, expected in ((log_scale, 0.0), (log_scale**2, 1.0), (z[:, 0] ** 2, 1.0)):
        mean, error = mean_and_error(values)
        assert abs(mean - expected) < 5.0 * error
        assert error < 0.1
    assert abs(np.corrcoef(log_scale[1:], log_scale[:-1])[0, 1]) < 0.9
