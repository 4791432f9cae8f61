"""AusterityGibbs samples what it should: against enumeration and a plain Gibbs sampler."""

from itertools import combinations, pairwise, product

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityGibbs
from tests.paper.fields import (
    CONFIGURATIONS,
    N_ENTRIES,
    plain_gibbs,
    probabilities,
    triples_field,
)
from tests.references import mean_and_error
from tests.running import chain_of

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
    found, error = mean_and_error(moments_of(draws), 50)
    tolerance = 4.5 * error + bias
    assert tolerance.max() < 0.06
    assert (np.abs(found - TRUTH) < tolerance).all()
    share = np.mean([s["data_fraction"] for s in statistics])
    assert share == 1.0 if epsilon == 0 else share < 0.9


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
@pytest.mark.parametrize("scan", ["systematic", "random"])
@pytest.mark.few("systematic-NUMBA", "systematic-FAST_COMPILE", "random-FAST_COMPILE")
def test_all_factors_give_the_chain_of_a_plain_gibbs_sampler(scan, mode):
    with FIELD as model:
        step = AusterityGibbs(
            likelihood=["factors"], epsilon=0.0, scan=scan, rng=11, compile_kwargs={"mode": mode}
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
        share, error = mean_and_error((draws == chosen).all(axis=1), 50)
        assert abs(share - 1 / len(allowed)) < 4.5 * error
