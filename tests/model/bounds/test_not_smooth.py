"""Rows that jump or bend, or that differ within a group, have no bound that is too small."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_austerity.model.bounds import NoBoundError, scalar_function, third_derivative_constants

RADII = [0.5, 2.0]


def constants(graph, predictors, data, center, gram=None):
    function = scalar_function(graph, predictors, [v for v, _ in data])
    center = np.asarray(center, dtype=float)
    if gram is None:
        gram = np.tile(np.eye(center.shape[1]), (len(center), 1, 1))
    return third_derivative_constants(function, [x for _, x in data], center, gram, RADII)


def by_brute_force(graph, predictor, data, center, radius):
    """Largest third derivatives by one predictor on a grid, shape (N,)."""
    (slope,) = pytensor.grad(graph.sum(), [predictor])
    (curvature,) = pytensor.grad(slope.sum(), [predictor])
    (third,) = pytensor.grad(curvature.sum(), [predictor])
    function = pytensor.function([predictor, *[v for v, _ in data]], third)
    values = [x for _, x in data]
    grid = np.linspace(-radius, radius, 41)
    return np.max([abs(function(center + step, *values)) for step in grid], axis=0)


class TestSteps:
    """A condition on a predictor that becomes a number, however it does."""

    def steps(self, make):
        eta, tau = pt.dvector("eta"), pt.dvector("tau")
        x, y = pt.dvector("x"), pt.dvector("y")
        columns = make(eta, x > tau, x)
        data = [(x, np.linspace(-1.0, 1.0, 8)), (y, np.zeros(8))]
        try:
            return constants(-((y - columns) ** 2), [eta, tau], data, np.zeros((8, 2)))
        except NoBoundError:
            return np.full((2, 8), np.inf)

    @pytest.mark.parametrize("kind", ["stacked", "set", "product"])
    def test_has_no_bound_where_it_may_happen(self, kind):
        makes = {
            "stacked": lambda eta, late, x: (
                pt.stack([pt.ones_like(x), late, x], axis=1) * eta[:, None]
            ).sum(axis=1),
            "set": lambda eta, late, x: (
                pt.set_subtensor(pt.zeros((8, 2))[:, 1], late) * eta[:, None]
            ).sum(axis=1),
            "product": lambda eta, late, x: late * eta,
        }
        found = self.steps(makes[kind])
        assert np.isinf(found[1]).all()  # all steps lie within two standard deviations


def test_exponents_of_the_rows_of_a_group_are_their_own():
    eta, lag, y = pt.dvector("eta"), pt.dvector("lag"), pt.dvector("y")
    n = 20
    values = np.arange(n, dtype=float)
    graph = -((y - 0.5 ** (eta + 0.0) * (1.0 + pt.exp(-pt.exp(eta))) ** lag) ** 2)
    center = np.zeros((n, 1))
    data = [(lag, values), (y, np.zeros(n))]
    found = constants(graph, [eta], data, center)
    for r, radius in enumerate(RADII):
        expected = by_brute_force(graph, eta, data, center[:, 0], radius)
        assert (found[r] >= expected * (1.0 - 1e-9)).all()


def test_formulas_agree_for_all_rows_of_a_group_or_not_at_all():
    eta, exposure = pt.dvector("eta"), pt.dvector("exposure")
    y = pt.lvector("y")
    n, rng = 300, np.random.default_rng(0)
    mu = pt.maximum(exposure * pt.exp(eta), 1e-8)
    graph = y * pt.log(mu) - mu
    values = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0.0, 2.0, size=n))
    data = [(exposure, np.sort(values)), (y, np.zeros(n, dtype=np.int64))]
    found = constants(graph, [eta], data, rng.normal(scale=0.1, size=(n, 1)))
    positive = np.sort(values) > 0.01
    assert (found[0][positive] >= np.sort(values)[positive] * np.exp(-0.8)).all()


def test_a_probability_that_is_clipped_bends():
    eta, y = pt.dvector("eta"), pt.lvector("y")
    p = pt.clip(pm.math.invprobit(eta), 1e-8, 1.0 - 1e-8)
    graph = pt.switch(y, pt.log(p), pt.log1p(-p))
    where = np.array([-5.65, -5.62, -5.6, 0.3, 0.4, 0.5, 0.6, 0.7])[:, None]
    gram = np.full((8, 1, 1), 0.1)
    found = constants(graph, [eta], [(y, np.ones(8, dtype=np.int64))], where, gram)
    assert np.isinf(found[:, :3]).all()
    assert np.isfinite(found[0, 3:]).all()


def test_fractions_that_are_cut_off_are_a_step():
    eta, y = pt.dvector("eta"), pt.dvector("y")
    graph = -((y - pt.cast(pt.exp(eta), "int64")) ** 2) + eta * 0.0
    found = constants(
        graph, [eta], [(y, np.zeros(3))], [[0.3], [5.0], [-4.0]], np.full((3, 1, 1), 0.01)
    )
    assert np.isfinite(found[0, 2])
    assert np.isinf(found[0, 1])
