"""Moves of levels that are skewed, or have a heavier tail than their normal approximation."""

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.levels.learned import LevelShapes, SplitNormals
from pymc_austerity.levels.moves import drawn_or_near

N_LEVELS, N_STEPS = 400, 1_500


def chains_of(target, start, near, n_steps, rng, split=None):
    """Metropolis-Hastings on many levels, each with its own decision."""
    z, path = np.array(start), []
    for _ in range(n_steps):
        there, log_ratio, _ = drawn_or_near(z, near, rng, split)
        log_ratio = log_ratio + target(there).sum(axis=1) - target(z).sum(axis=1)
        accept = np.log(rng.random(len(z))) < log_ratio
        z = np.where(accept[:, None], there, z)
        path.append(z)
    return np.array(path)


def test_leaves_the_target_invariant():
    """Levels that begin with draws of a target keep its quantiles, whoever makes steps."""
    rng, target = np.random.default_rng(1), stats.t(4)
    start = target.rvs(size=(4_000, 1), random_state=rng)
    near, ones = np.where(np.arange(4_000) % 2, 0.1, 0.9), np.ones_like(start)
    split = SplitNormals(0.3 * ones, 0.6 * ones, 1.7 * ones)
    ends = chains_of(target.logpdf, start, near, 50, rng, split)[-1]
    assert stats.kstest(ends[:, 0], target.cdf).pvalue > 1e-3
    assert not np.array_equal(ends, start)


@pytest.mark.parametrize("q", [1, 2])
def test_chains_return_from_a_tail(q):
    rng, target = np.random.default_rng(2), stats.t(3)
    start = np.full((N_LEVELS, q), 15.0)
    ends = chains_of(target.logpdf, start, 0.5, N_STEPS, rng)[-1]
    assert stats.kstest(ends[:, 0], target.cdf).pvalue > 1e-3
    stuck = chains_of(target.logpdf, start, 0.0, N_STEPS, rng)[-1]
    assert (stuck == 15.0).mean() > 0.9


def test_density_is_that_of_the_draws():
    """A target that is the proposal accepts all draws, in every coordinate."""
    rng, shape = np.random.default_rng(3), (500, 2)
    split = SplitNormals(*(rng.uniform(*ends, shape) for ends in [(-1.0, 1.0), (0.3, 2), (0.3, 2)]))

    def log_density(z):
        return -0.5 * ((z - split.mode) / np.where(z < split.mode, split.below, split.above)) ** 2

    z = split.drawn(rng)
    there, log_ratio, is_near = drawn_or_near(z, 0.3, rng, split)
    total = log_ratio + log_density(there).sum(axis=1) - log_density(z).sum(axis=1)
    np.testing.assert_allclose(total[~is_near], 0.0, atol=1e-9)
    side = (there < split.mode)[~is_near].mean(axis=0)
    share = (split.below / (split.below + split.above))[~is_near].mean(axis=0)
    np.testing.assert_allclose(side, share, atol=4 * 0.5 / np.sqrt(350))


def test_moments_are_those_asked_for():
    mean, variance, skewness = np.meshgrid([-1.0, 0.5], [0.2, 3.0], [-0.8, 0.0, 0.4])
    split = SplitNormals.of_moments(mean, variance, skewness)
    z = np.linspace(-15.0, 15.0, 200_001)[:, None, None, None]
    density = np.exp(-0.5 * ((z - split.mode) / np.where(z < split.mode, *split[1:])) ** 2)
    density /= density.sum(axis=0)
    found = (density * z).sum(axis=0)
    around = [(density * (z - found) ** k).sum(axis=0) for k in (2, 3)]
    np.testing.assert_allclose(found, mean, atol=1e-3)
    np.testing.assert_allclose(around[0], variance, rtol=1e-3)
    np.testing.assert_allclose(around[1] / around[0] ** 1.5, skewness, atol=1e-3)


def test_shapes_of_levels_are_learned():
    """Skewed levels get a tail on one side; noise does not move those that are normal."""
    rng, shapes = np.random.default_rng(5), LevelShapes.begin((200, 1))
    skewed = np.arange(200) < 100
    for _ in range(1_000):
        z = np.where(skewed, stats.loggamma(0.5).rvs(200, random_state=rng), rng.normal(size=200))
        shapes = shapes.step(z[:, None])
    mode, below, above = (its[:, 0] for its in shapes.split)
    assert (below[skewed] > 1.7 * above[skewed]).all()
    assert np.abs(mode[~skewed]).mean() < 0.1
    assert np.abs(np.log(below / above)[~skewed]).mean() < 0.1
