"""The search for the mode of levels where the log-density bends upward."""

import numpy as np
import pymc as pm
import pytest
from scipy import sparse
from scipy.linalg import block_diag

from pymc_austerity import GroupedMH
from pymc_austerity.setup.levels.anchor import _bent_down
from tests.running import built

FIRST = (20, 2)


def arrow(rng, shift):
    """A symmetric matrix: blocks of levels that depend on four other entries."""
    blocks = rng.normal(size=(*FIRST, 2))
    blocks = blocks + np.swapaxes(blocks, 1, 2) + shift * np.eye(2)
    between, rest = 0.1 * rng.normal(size=(40, 4)), rng.normal(size=(4, 4))
    rest = rest + rest.T + shift * np.eye(4)
    return sparse.csr_array(sparse.block_array([[block_diag(*blocks), between], [between.T, rest]]))


def test_directions_upward_are_reversed(rng):
    precision = arrow(rng, 0.0)
    assert np.linalg.eigvalsh(precision.toarray())[0] < 0.0
    bent = _bent_down(precision, FIRST).toarray()
    assert np.linalg.eigvalsh(bent)[0] > 0.0
    np.testing.assert_array_equal(bent[:40, 40:], precision.toarray()[:40, 40:])


def test_a_concave_log_density_stays(rng):
    precision = arrow(rng, 9.0)
    np.testing.assert_allclose(_bent_down(precision, FIRST).toarray(), precision.toarray())


@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
def test_scales_of_levels_with_one_row():
    """With one row, the mode of a level's scale given its mean would be zero."""
    rng = np.random.default_rng(3)
    group = np.r_[np.arange(120), rng.integers(60, size=4_000)]
    spread = 0.05 * np.exp(rng.normal(size=120))
    y = rng.normal(11.0, 0.7, size=120)[group]
    y += spread[group] * rng.standard_t(3, size=group.size)
    with pm.Model():
        mean = pm.Normal("mean", 5.0, 1.0) + pm.HalfNormal("spread") * pm.Normal("z", shape=120)
        log_scale = pm.Normal("scale", pm.Normal("m", -1.0), pm.HalfNormal("s", 0.5), shape=120)
        pm.Normal("y", mean[group], pm.math.exp(log_scale[group]), observed=y)
        step = GroupedMH()
    assert "120 levels" in step.summary


def test_scales_of_common_entries_do_not_collapse():
    """A random walk that all rows read, with few changes, beside levels."""
    rng = np.random.default_rng(4)
    group, month = rng.integers(40, size=2_000), rng.integers(12, size=2_000)
    with pm.Model() as model:
        steps = pm.GaussianRandomWalk(
            "walk", sigma=pm.HalfNormal("s"), init_dist=pm.Normal.dist(), steps=11
        )
        effect = pm.Normal("effect", 0.0, pm.HalfNormal("tau"), shape=40)
        y = rng.random(2_000) < 0.3
        pm.Bernoulli("y", logit_p=steps[month] + effect[group], observed=y)
    target = built(model, GroupedMH).target
    names = [variable.name for variable in model.value_vars]
    start = target.coordinates.start
    place = names.index("s_log__")
    assert place == 0 and start.size == 54
    assert target.sweep.posterior.anchor[0] > -4.0
