"""AusterityGibbs samples what it should: against enumeration and a plain Gibbs sampler."""

from itertools import combinations, pairwise, product

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_austerity import AusterityGibbs, AusterityMH, RandomWalkProposal
from tests.paper.fields import (
    CONFIGURATIONS,
    N_ENTRIES,
    batch_error,
    chain_of,
    pairs_grid,
    plain_gibbs,
    probabilities,
    regression,
    triples_field,
)
from tests.running import QUIET

FAST = {"compile_kwargs": {"mode": "FAST_COMPILE"}}
FIELD = triples_field()


def moments_of(draws):
    """Means of all entries and of all products of two."""
    i, j = np.array(list(combinations(range(draws.shape[1]), 2))).T
    return np.hstack([draws, draws[:, i] * draws[:, j]]).astype(float)


TRUTH = probabilities(FIELD, "x") @ moments_of(CONFIGURATIONS)


@pytest.mark.parametrize(
    ("epsilon", "bias", "scan"),
    [(0.0, 0.0, "systematic"), (0.005, 0.01, "systematic"), (0.005, 0.01, "random")],
)
@pytest.mark.few("0.005-0.01-systematic")
def test_marginals_of_an_enumerated_field(epsilon, bias, scan):
    with FIELD as model:
        step = AusterityGibbs(
            likelihood=["factors"], epsilon=epsilon, batch_size=9, scan=scan, rng=4
        )
    draws, statistics = chain_of(step, model.initial_point(), 10_000)
    found = moments_of(draws)
    tolerance = 4.5 * batch_error(found) + bias
    assert tolerance.max() < 0.06
    assert (np.abs(found.mean(axis=0) - TRUTH) < tolerance).all()
    share = np.mean([s["data_fraction"] for s in statistics])
    assert share == 1.0 if epsilon == 0 else share < 0.9


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
@pytest.mark.parametrize("scan", ["systematic", "random"])
@pytest.mark.few("systematic-NUMBA", "systematic-FAST_COMPILE", "random-FAST_COMPILE")
def test_all_factors_give_the_chain_of_a_plain_gibbs_sampler(scan, mode):
    with FIELD as model:
        step = AusterityGibbs(
            likelihood=["factors"],
            epsilon=0.0,
            scan=scan,
            rng=11,
            compile_kwargs={"mode": mode},
        )
    point = model.initial_point()
    n_sweeps = 300 if mode == "NUMBA" else 50
    draws, statistics = chain_of(step, point, n_sweeps)
    log_density = model.compile_logp()
    expected = plain_gibbs(
        lambda x: log_density({"x": x}), point["x"], n_sweeps, np.random.default_rng(11), scan
    )
    np.testing.assert_array_equal(draws, expected)
    assert len(np.unique(draws, axis=0)) > 20
    assert all(s["used_all_rows"] for s in statistics)
    assert {s["data_fraction"] for s in statistics} == {1.0}
    assert {s["n_rows_used"] for s in statistics} == {N_ENTRIES * 36}


@pytest.mark.exhaustive
def test_variables_that_all_rows_read():
    """Rows of a regression whose components are chosen by binary variables."""
    model = regression()
    configurations = np.array(list(product([0, 1], repeat=4)))
    truth = probabilities(model, "gamma", configurations) @ moments_of(configurations)
    assert ((truth[:4] > 0.05) & (truth[:4] < 0.95)).all()
    with model:
        step = AusterityGibbs(epsilon=0.001, batch_size=60, rng=1)
    assert not step.factors.is_analysed
    np.testing.assert_array_equal(step.factors.sizes, 300)
    draws, _ = chain_of(step, model.initial_point(), 8_000)
    found = moments_of(draws)
    assert (np.abs(found.mean(axis=0) - truth) < 4.5 * batch_error(found) + 0.01).all()


def sample(model, steps, **kwargs):
    with model:
        settings = {"draws": 4_000, "tune": 500, "chains": 2, "cores": 1, "random_seed": 2}
        return pm.sample(step=steps, **(settings | QUIET | kwargs))


@pytest.mark.exhaustive
def test_beside_a_step_method_for_an_unknown_strength():
    """The joint distribution of ten spins and the strength of their ties, by quadrature."""
    model = pairs_grid()
    grid = np.linspace(-1.5, 3.5, 101)
    log_density = model.compile_logp()
    values = np.array(
        [log_density({"x": c.reshape(2, 5), "theta": t}) for c in CONFIGURATIONS for t in grid[::2]]
    ).reshape(len(CONFIGURATIONS), -1)
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    mean = float(weights.sum(axis=0) @ grid[::2])
    pairs = weights.sum(axis=1) @ moments_of(CONFIGURATIONS)
    named = {"likelihood": ["factors"]}
    with model:
        walk = AusterityMH(["theta"], epsilon=0.0, proposal=RandomWalkProposal(), **named)
        others = {
            "Metropolis": pm.Metropolis([model["theta"]]),
            "AusterityMH": walk,
        }
        ours = AusterityGibbs(["x"], epsilon=0.0, **named)
    for name, other in others.items():
        idata = sample(model, [ours, other])
        theta = idata.posterior["theta"].values.reshape(-1, 1)
        x = idata.posterior["x"].values.reshape(len(theta), -1)
        assert abs(theta.mean() - mean) < 4.5 * batch_error(theta)[0], name
        found = moments_of(x)
        assert (np.abs(found.mean(axis=0) - pairs) < 4.5 * batch_error(found) + 1e-3).all(), name


@pytest.mark.exhaustive
def test_spike_and_slab_with_sampled_coefficients():
    rng = np.random.default_rng(7)
    design = rng.normal(size=(150, 3))
    y = design @ [0.25, 0.0, 0.15] + rng.normal(size=150)
    with pm.Model() as model:
        gamma = pm.Bernoulli("gamma", 0.4, shape=3)
        beta = pm.Normal("beta", 0.0, 0.5, shape=3)
        pm.Normal("y", design @ (gamma * beta), 1.0, observed=y)
        steps = [AusterityGibbs([gamma], epsilon=0.0), pm.Metropolis([beta])]
    models = np.array(list(product([0, 1], repeat=3)))
    evidence = [
        stats.multivariate_normal.logpdf(y, cov=np.eye(150) + 0.25 * (design * m) @ (design * m).T)
        + (np.log(0.4) * m.sum() + np.log(0.6) * (3 - m.sum()))
        for m in models
    ]
    weights = np.exp(evidence - np.max(evidence))
    truth = weights / weights.sum() @ models
    draws = sample(model, steps, draws=8_000).posterior["gamma"].values.reshape(-1, 3)
    error = batch_error(draws.astype(float), n_batches=20)
    assert error.max() < 0.04
    assert (np.abs(draws.mean(axis=0) - truth) < 4.5 * error).all()


def test_what_is_impossible_is_never_moved_to():
    """Neighbours are never both one: the uniform distribution on the sets that are left."""
    i = np.arange(5)
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=6, initval=np.zeros(6, dtype=int))
        pm.Potential("factors", pm.math.switch(x[i] * x[i + 1] > 0, -np.inf, 0.0))
        step = AusterityGibbs(likelihood=["factors"], epsilon=0.05, batch_size=2, rng=1)
    step.set_rng(np.random.default_rng(1))
    draws, _ = chain_of(step, model.initial_point(), 6_000)
    assert (draws[:, :-1] * draws[:, 1:] == 0).all()
    allowed = [c for c in product([0, 1], repeat=6) if not any(a * b for a, b in pairwise(c))]
    for chosen in allowed:
        here = (draws == chosen).all(axis=1)[:, None].astype(float)
        assert abs(here.mean() - 1 / len(allowed)) < 4.5 * batch_error(here)[0]
