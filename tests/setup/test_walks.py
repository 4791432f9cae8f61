"""Walks of hyperparameters with levels along: compiled code beside moves one by one."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from pymc_austerity.levels import PartlyNonCentered, RowFreeTerms
from pymc_austerity.proposals import Layout, RandomWalkProposal
from tests.setup.test_levels import MODELS, built, near

N_STEPS = 12
PROPOSAL = RandomWalkProposal(scaling=0.3)


def with_hyperparameters(its):
    return [k for k, levels in enumerate(its.factors) if levels.prior.hyperparameters.size]


def walked(its, factor, theta, root, *, in_python):
    """Where a walk ends, its volume, and the next random number; and whether it moved."""
    rng = np.random.default_rng(3)
    entries = its.factors[factor].prior.hyperparameters
    tilt = np.linspace(-0.5, 0.5, entries.size)
    along = PartlyNonCentered(its, factor, theta, entries, tilt=tilt)
    state = PROPOSAL.init(Layout.continuous(entries.size))._replace(root=root)
    if in_python:
        for _ in range(N_STEPS):
            there, log_ratio, _ = PROPOSAL.propose(state, along.theta[entries], rng)
            along.move(there, log_ratio, -rng.standard_exponential())
    else:
        along.walk(state, N_STEPS, rng)
    return along.theta, along._volume, rng.random(), along.theta is not theta


def expect_the_same(its, factor, theta, root):
    point, volume, following, has_moved = walked(its, factor, theta, root, in_python=False)
    expected = walked(its, factor, theta, root, in_python=True)
    np.testing.assert_allclose(point, expected[0], rtol=1e-9, atol=1e-9)
    assert volume == pytest.approx(expected[1])
    assert (following, has_moved) == expected[2:]
    return has_moved


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("is_full", [True, False])
@pytest.mark.few("True-heavy tails", "False-slopes")
def test_make_the_same_decisions(name, is_full):
    _, target = built(name)
    its = target.sweep.posterior
    for factor in with_hyperparameters(its):
        h = its.factors[factor].prior.hyperparameters.size
        root = np.tril(np.ones((h, h))) if is_full else np.linspace(1.0, 2.0, h)
        moved = [expect_the_same(its, factor, near(target), root) for _ in range(4)]
        assert any(moved)


def test_are_compiled_for_usual_models():
    for name in MODELS:
        its = built(name)[1].sweep.posterior
        for factor in with_hyperparameters(its):
            entries = its.factors[factor].prior.hyperparameters
            assert PartlyNonCentered(its, factor, its.anchor, entries)._by_address() is not None


def test_go_on_where_a_precision_is_not_positive_definite():
    _, target = built("not centered")
    its = target.sweep.posterior
    levels = its.factors[0]
    turned = replace(levels, hessians=-levels.hessians)
    its = replace(its, factors=(turned, *its.factors[1:]))
    factor = with_hyperparameters(its)[0]
    h = its.factors[factor].prior.hyperparameters.size
    for _ in range(4):
        expect_the_same(its, factor, near(target, 0.1), 0.1 * np.eye(h))


def test_the_exact_part_is_pickled_without_addresses():
    _, target = built("crossed")
    exact = target.sweep.posterior.row_free_part
    assert isinstance(exact, RowFreeTerms)
    new, old = near(target), near(target)
    expected = exact(new, old)
    assert pickle.loads(pickle.dumps(exact))(new, old) == expected
    assert b"by_address" not in pickle.dumps(exact)
    assert exact(new, new) == pytest.approx(0.0, abs=1e-12)
    other = old.copy()
    other[0] += np.nan
    assert not np.isfinite(exact(other, old))
