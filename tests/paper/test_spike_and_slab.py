import cloudpickle
import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_austerity.paper import SpikeAndSlab
from pymc_austerity.setup.support import special_moves


def test_log_density_counts_what_is_in_the_model():
    beta = SpikeAndSlab.dist([1, 0, 1, 0], pm.Laplace.dist(0.5, 2.0))
    found = pm.logp(beta, np.array([1.5, 0.0, 0.0, 0.1])).eval()
    slab = stats.laplace(0.5, 2.0).logpdf([1.5, 0.0])
    np.testing.assert_allclose(found, [slab[0], 0.0, slab[1], -np.inf])


def test_draws_are_zero_or_from_the_slab():
    draws = pm.draw(SpikeAndSlab.dist([1, 0], pm.Normal.dist(3.0, 2.0)), 2_000, random_seed=1)
    assert (draws[:, 1] == 0.0).all()
    assert stats.kstest(draws[:, 0], stats.norm(3.0, 2.0).cdf).pvalue > 1e-4


@pytest.fixture
def model():
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 2.0)
        gamma = pm.Bernoulli("gamma", 0.4, shape=4)
        SpikeAndSlab("beta", gamma, pm.Laplace.dist(0.0, spread))
        SpikeAndSlab("wide", gamma, pm.Normal.dist(0.0, 1.0), shape=(3, 4))
    return model


def test_log_density_of_a_model(model):
    point = model.initial_point()
    np.testing.assert_array_equal(point["beta"], 0.0)
    point |= {"gamma": np.array([0, 1, 0, 0]), "beta": np.array([0.0, 2.0, 0.0, 0.0])}
    point["spread_log__"] = np.array(0.3)
    found = model.point_logps(point, round_vals=10)
    assert found["beta"] == pytest.approx(stats.laplace(0.0, np.exp(0.3)).logpdf(2.0))
    assert found["wide"] == pytest.approx(3 * stats.norm.logpdf(0.0))
    copy = cloudpickle.loads(cloudpickle.dumps(model))
    assert copy.point_logps(point, round_vals=10) == found


def test_support_is_known(model):
    special = {rv.name: special_moves(rv) for rv in model.free_RVs}
    assert "ReversibleJumpProposal('beta', ...)" in special["beta"].format(name="beta")
    assert {name for name, instead in special.items() if instead} == {"beta", "wide"}
