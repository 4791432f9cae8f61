"""Errors of acceptance probabilities: against adaptive quadrature and the test itself."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from examples.shared.acceptance import TrialRun, acceptance_error, design_for_acceptance
from pymc_austerity.design import Boundary, constant_looks, doubling_looks, operating_characteristic
from tests.design.simulation import counts_of, population, quantiles_of, run_tests

LOOKS, BOUNDARY = constant_looks(500, 10_000), Boundary(0.05)


def brute_force(log_ratio, spread, looks, boundary):
    """Equation 6 by adaptive quadrature over log u, the error worked out at every point anew."""

    def integrand(log_u):
        mu_std = (log_ratio - log_u) / spread
        return math.exp(log_u) * float(operating_characteristic(mu_std, looks, boundary).error)

    accepted = min(0.0, log_ratio)
    near = [accepted - step * spread for step in (20.0, 2.0, 0.2) if step * spread < 40.0]
    cuts = [accepted - 40.0, *near, accepted]
    below = sum(quad(integrand, a, b)[0] for a, b in pairwise(cuts))
    far = [accepted + step * spread for step in (0.2, 2.0, 20.0) if accepted + step * spread < 0]
    cuts = [accepted, *far, 0.0]
    above = sum(quad(integrand, a, b)[0] for a, b in pairwise(cuts))
    return above - below


@pytest.mark.parametrize("log_ratio", [-30.0, -3.0, -0.5, 0.0, 0.7, 5.0])
@pytest.mark.parametrize("spread", [0.02, 1.0, 8.0])
def test_agrees_with_equation_6_by_brute_force(log_ratio, spread):
    found = acceptance_error([log_ratio], [spread], LOOKS, BOUNDARY)[0]
    expected = brute_force(log_ratio, spread, LOOKS, BOUNDARY)
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-7)


@pytest.mark.few("0.5-2.0-looks0", "-1.0-1.0-looks1")
@pytest.mark.parametrize("looks", [constant_looks(100, 1_000), doubling_looks(100, 1_000)])
@pytest.mark.parametrize(("log_ratio", "spread"), [(-1.0, 1.0), (0.5, 2.0)])
def test_agrees_with_the_test_itself(looks, log_ratio, spread, rng):
    """Accept by the sequential test on real rows, a new u and a new order every time."""
    n_rows, n_repeats, boundary = 1_000, 40_000, Boundary(0.1)
    rows = population(0.0, n_rows, rng)
    counts, quantiles = counts_of(looks.shares, n_rows), quantiles_of(boundary, looks, n_rows)
    identity, accepted = np.tile(np.arange(n_rows), (1_000, 1)), 0
    for _ in range(n_repeats // 1_000):
        mu_std = (log_ratio - np.log(rng.uniform(size=1_000))) / spread
        differences = rows[rng.permuted(identity, axis=1)] + mu_std[:, None] / math.sqrt(n_rows - 1)
        accepted += run_tests(differences, counts, quantiles)[0].sum()
    promised = (
        math.exp(min(0.0, log_ratio)) + acceptance_error([log_ratio], [spread], looks, boundary)[0]
    )
    error = math.sqrt(promised * (1 - promised) / n_repeats)
    assert abs(accepted / n_repeats - promised) < 3 * error


def test_a_design_keeps_its_promise_and_beats_a_naive_grid(rng):
    """Decisions of a random walk at the posterior's scale."""
    log_u, n_rows = np.log(rng.uniform(size=300)), 10_000
    trial = TrialRun(
        mean=rng.normal(-0.7, 1.2, size=300) / n_rows,
        standard_deviation=rng.uniform(0.2, 1.2, size=300) / math.sqrt(n_rows),
        log_threshold=log_u + rng.normal(0.0, 0.1, size=300),
        log_u=log_u,
        n_rows=n_rows,
    )

    def promised(batch_size, boundary):
        looks = constant_looks(batch_size, n_rows)
        delta = acceptance_error(trial.log_ratio, trial.spread, looks, boundary)
        usage = operating_characteristic(trial.mu_std, looks, boundary).data_fraction
        return np.abs(delta).mean(), usage.mean()

    sizes = (250, 500, 1_000, 2_500)
    design = design_for_acceptance(trial, 0.01, batch_sizes=sizes)
    off, usage = promised(design.batch_size, Boundary(design.epsilon, design.alpha))
    assert 0.0098 < off < 0.01002  # as large as is allowed, but for interpolation
    assert design.expected_data_fraction == pytest.approx(usage, rel=2e-3)
    grid = [promised(m, Boundary(e)) for m in sizes for e in (0.003, 0.01, 0.02, 0.05, 0.1)]
    allowed = [usage for off, usage in grid if off <= 0.01]
    assert len(allowed) > 3
    assert design.expected_data_fraction < min(allowed)
