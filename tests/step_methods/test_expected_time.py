"""What NUTS is expected to take, from the model's graph."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_austerity.step_methods.expected_time import expected_cost, size_of
from tests.zoo.registry import written


def nuts_seconds(size):
    return expected_cost(size).of_run


def size(write):
    model = written(write)
    return size_of(model, model.initial_point())


def normal():
    pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.zeros(10_000))


def zero_inflated():
    mu, alpha = pm.Exponential("mu", 1.0), pm.Exponential("alpha", 1.0)
    pm.ZeroInflatedNegativeBinomial("y", psi=0.5, mu=mu, alpha=alpha, observed=np.zeros(10_000))


def of_slices():
    """Some inputs of nodes have no dimensions."""
    x = pt.as_tensor(np.zeros((10_000, 3)))[:, [0, 2]]
    pm.Normal("y", pm.Normal("mu") + x.sum(axis=1), 1.0, observed=np.zeros(10_000))


def test_special_functions_take_time():
    few, many = size(normal), size(zero_inflated)
    assert few.n_rows == many.n_rows == 10_000
    assert many.n_operations > 3 * few.n_operations > 0
    assert nuts_seconds(many) > 2 * nuts_seconds(few)


def test_nodes_without_dimensions_count_for_nothing():
    assert size(of_slices).n_operations > size(normal).n_operations


def pairs():
    cov = np.array([[1.0, 0.3], [0.3, 1.0]])
    pm.MvNormal("y", pm.Normal("mu", shape=2), cov, observed=np.zeros((5_000, 2)))


def series():
    start = pm.Normal.dist()
    pm.GaussianRandomWalk("y", pm.Normal("mu"), 1.0, init_dist=start, observed=np.zeros(5_000))


def labelled():
    import pymc.dims as pmd  # not above, because it warns when imported that it is experimental

    pm.modelcontext(None).add_coords({"row": np.arange(5_000)})
    pmd.Normal("y", pmd.Normal("mu"), 1.0, observed=pmd.Data("data", np.zeros(5_000), dims="row"))


def columns():
    pm.Normal("y", pm.Normal("mu", shape=2), 1.0, observed=np.zeros((5_000, 2)))


def test_a_response_of_several_entries_is_one_row():
    assert size(pairs).n_rows == size(series).n_rows == size(labelled).n_rows == 5_000
    assert size(columns).n_rows == 10_000


def rates():
    x = np.linspace(0.0, 1.0, 10_000)
    pm.Poisson("y", pm.math.exp(pm.Normal("eta") * x), observed=np.zeros(10_000))


def rates_of_their_own():
    x = np.linspace(1.0, 2.0, 10_000)
    pm.Poisson("y", pm.Exponential("mu", 1.0) * x, observed=np.zeros(10_000))


def test_a_logarithm_of_an_exponential_takes_no_time():
    log_alone, log_of_exp = size(rates_of_their_own), size(rates)
    assert log_alone.n_operations == log_of_exp.n_operations
