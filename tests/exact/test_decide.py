"""Exact decisions against brute force: detailed balance, stationarity, cost."""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.exact import (
    Grid,
    change_along,
    decide,
    expected_rows,
    group_rows,
    largest_change,
    largest_change_of_cubic,
    number_of_candidates,
)
from tests.exact.logistic import GROUPINGS, Logistic
from tests.references import exact_decision


def products(u, v):
    return u @ u, u @ v, v @ v


def unit_vectors(rng, n, size):
    vectors = rng.normal(size=(n, size))
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


@pytest.mark.parametrize("mean", [0.0, 0.3, 4.0, 60.0])
def test_numbers_of_candidates_have_a_poisson_distribution(mean):
    rng, n = np.random.default_rng(6), 20_000
    numbers = np.array([number_of_candidates(mean, rng) for _ in range(n)])
    counts = np.bincount(numbers)
    expected = n * stats.poisson(mean).pmf(np.arange(counts.size))
    often = expected > 10.0
    excess = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert stats.chi2.sf(excess, np.count_nonzero(often)) > 1e-4
    assert counts[~often].sum() < n - expected[often].sum() + 40.0


class TestLargestChange:
    def test_does_not_depend_on_the_order_of_the_points(self):
        for u, v in np.random.default_rng(0).normal(size=(20, 2, 5)):
            for change in (largest_change, largest_change_of_cubic):
                assert change(*products(u, v)) == change(*products(v, u))
            one = change_along(u[0], v[0], *products(u, v), 0.8, 0.6)
            assert one == change_along(v[0], u[0], *products(v, u), 0.8, 0.6)

    @pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
    def test_bounds_cubics_and_is_nearly_attained(self, scale):
        rng = np.random.default_rng(1)
        for u, v in rng.normal(size=(20, 2, 3)) * [[[1.0], [scale]]]:
            n = unit_vectors(rng, 200_000, 3)
            found = (abs((n @ v) ** 3 - (n @ u) ** 3) / 6).max()
            bound = largest_change_of_cubic(*products(u, v))
            assert 0.97 * bound <= found <= bound
            assert found <= largest_change(*products(u, v)) * (1 + 1e-12)

    @pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, 1.5])
    def test_bounds_cubics_of_directions_near_one(self, angle):
        rng = np.random.default_rng(2)
        for u, v, m in rng.normal(size=(20, 3, 3)):
            m /= np.linalg.norm(m)
            across = unit_vectors(rng, 20_000, 3)
            across -= np.outer(across @ m, m)
            across /= np.linalg.norm(across, axis=1)[:, None]
            t = angle * rng.random(20_000)[:, None]
            n = np.cos(t) * m + np.sin(t) * across
            args = (m @ u, m @ v, *products(u, v), math.cos(angle), math.sin(angle))
            change, reach = change_along(*args)
            assert (abs((n @ v) ** 3 - (n @ u) ** 3) / 6 <= change + 1e-12).all()
            assert max(abs(n @ u).max(), abs(n @ v).max()) <= reach + 1e-12


class TestDecide:
    @pytest.mark.few("decide-grouping1", "decide-grouping2")
    @pytest.mark.parametrize("grouping", GROUPINGS)
    @pytest.mark.parametrize("decide", ["decide", "decide_by_fireflies"])
    def test_detailed_balance(self, decide, grouping):
        """pi(x) a(x, y) = pi(y) a(y, x), with acceptance averaged over all that is random."""
        model = Logistic(40, 2, **grouping)
        decided = getattr(model, decide)
        points = np.array([[0.0, 0.0], [1.5, -1.0], [-2.0, 0.7], [0.4, 2.0]])
        log_density = np.array([model.remainders(u).sum() for u in points])
        rng, n = np.random.default_rng(2), 4_000
        for i in range(len(points)):
            for j in range(i):
                forward, back = (
                    np.mean([decided(points[a], points[b], rng).accept for _ in range(n)])
                    for a, b in ((i, j), (j, i))
                )
                weight = math.exp(log_density[j] - log_density[i])
                spread = math.sqrt((forward * (1 - forward) + weight**2 * back * (1 - back)) / n)
                assert abs(forward - weight * back) < 4.5 * spread + 1e-12

    def test_accepts_as_often_as_the_reference(self):
        """Fewer bounds of one group read, by thinning, what independent Poisson variables do."""
        model = Logistic(60, 2)
        u, v = np.array([1.5, -1.0]), np.array([-1.0, 1.2])
        residuals = model.remainders(v) - model.remainders(u)
        sizes = np.diff(model.groups.starts)
        bounds = np.repeat(model.groups.largest[0], sizes) * largest_change(*products(u, v))
        kept = bounds <= 1.0
        rng, n = np.random.default_rng(3), 20_000
        ours = np.mean([model.decide(u, v, rng).accept for _ in range(n)])
        plain = np.mean([exact_decision(residuals, bounds, kept, 0.0, rng) for _ in range(n)])
        assert abs(ours - plain) < 4.5 * math.sqrt(2 * plain * (1 - plain) / n) + 0.01

    def test_reads_all_rows_beyond_the_largest_radius(self):
        model = Logistic(50, 2)
        decision = model.decide(np.zeros(2), np.full(2, 30.0), np.random.default_rng(0))
        assert decision.n_rows_used == 50

    def test_zero_bounds_read_nothing(self):
        constants = np.zeros((1, 10))
        _, groups = group_rows(constants, Grid.of(constants, np.array([5.0])))
        nothing = decide(
            np.zeros_like, np.zeros(2), np.ones(2), 0.0, groups, np.random.default_rng(0)
        )
        assert nothing[:2] == (True, 0)


class TestCost:
    @pytest.mark.parametrize(("n_rows", "most"), [(10_000, 60), (100_000, 20)])
    def test_rows_and_acceptance_of_a_logistic_regression(self, n_rows, most):
        model = Logistic(n_rows, 20, n_directions=0)
        rng = np.random.default_rng(1)
        u, accepted, used = rng.normal(size=20), [], []
        pairs = rng.normal(size=(20, 2, 20))
        for _ in range(1_000):
            v = rng.normal(size=20)
            decision = model.decide(u, v, rng)
            accepted.append(decision.accept)
            used.append(decision.n_rows_used)
            u = v if decision.accept else u
        assert np.mean(used) < most
        assert np.mean(accepted) > 0.88
        assert expected_rows(model.groups, pairs) == pytest.approx(np.mean(used), rel=0.5)
