"""With all rows at every decision the chain is plain Metropolis-Hastings, bit for bit."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, RandomWalkProposal
from pymc_austerity.proposals import Layout
from tests.references import metropolis
from tests.running import built, chain_of, walk
from tests.step_methods.models import N_ROWS, normal_mean, normal_regression

COVARIANCE = 0.002 * np.array(
    [[1.0, 0.3, 0.0, 0.0], [0.3, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.5]]
)


@pytest.mark.few("windows-settings1")
@pytest.mark.parametrize(
    "settings", [{"epsilon": 0.0}, {"batch_size": N_ROWS}, {"batch_size": 10**9}]
)
@pytest.mark.parametrize("sampling", ["windows", "fresh"])
def test_all_rows_give_the_chain_of_a_full_data_sampler(settings, sampling):
    model = normal_regression()
    walk = RandomWalkProposal(covariance=COVARIANCE, scaling=1.0)
    step = built(model, proposal=walk, sampling=sampling, tune=False, rng=11, **settings)
    start = model.initial_point()
    chain, statistics = chain_of(step, start, 300)

    log_density = model.compile_logp()
    state = walk.init(Layout.continuous(4))
    expected = metropolis(
        lambda q: log_density({"beta": q[:3], "sigma_log__": q[3]}),
        lambda q, rng: walk.propose(state, q, rng)[0],
        np.concatenate([np.ravel(value) for value in start.values()]),
        300,
        np.random.default_rng(11),
    )
    np.testing.assert_array_equal(chain, expected)
    assert len(np.unique(chain[:, 0])) > 30
    assert all(stats["used_all_rows"] for stats in statistics)
    assert {stats["data_fraction"] for stats in statistics} == {1.0}
    assert {stats["decision_error"] for stats in statistics} == {0.0}


def test_the_chain_of_pymc_metropolis():
    """For one unknown PyMC's own sampler makes the same moves of the same random numbers."""
    model = normal_mean()
    with model:
        ours = AusterityMH(
            epsilon=0.0, tune=False, rng=5, proposal=RandomWalkProposal([0.01], scaling=1.0)
        )
        theirs = pm.Metropolis(S=np.array([0.1]), tune=False, rng=5)
    chains = [walk(step, model.initial_point(), 500) for step in (ours, theirs)]
    np.testing.assert_array_equal(*chains)
    assert len(np.unique(chains[0])) > 50
