"""Moves of levels whose posterior has a heavier tail than its normal approximation."""

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.levels.moves import drawn_or_near

N_LEVELS, N_STEPS = 400, 1_500


def chains_of(target, start, near, n_steps, rng):
    """Metropolis-Hastings on many levels, each with its own decision."""
    z, path = np.array(start), []
    for _ in range(n_steps):
        there, log_ratio, _ = drawn_or_near(z, near, rng)
        log_ratio = log_ratio + target(there).sum(axis=1) - target(z).sum(axis=1)
        accept = np.log(rng.random(len(z))) < log_ratio
        z = np.where(accept[:, None], there, z)
        path.append(z)
    return np.array(path)


def test_leaves_the_target_invariant():
    """Levels that begin with draws of a target keep its quantiles, whoever makes steps."""
    rng, target = np.random.default_rng(1), stats.t(4)
    start = target.rvs(size=(4_000, 1), random_state=rng)
    near = np.where(np.arange(4_000) % 2, 0.1, 0.9)
    ends = chains_of(target.logpdf, start, near, 50, rng)[-1]
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
