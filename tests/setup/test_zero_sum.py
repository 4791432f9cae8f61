"""Moves of effects that sum to zero, against brute force on all rows."""

from functools import cache

import numpy as np
import pymc as pm
import pytensor
import pytest
from scipy.stats import norm

from pymc_austerity.levels import PartlyNonCentered
from pymc_austerity.levels.moves import move_common, move_levels
from pymc_austerity.model.compiling import NUMPY_MODE
from pymc_austerity.setup.coordinates import grouped_problem
from pymc_austerity.setup.levels.anchor import NoGroupsError
from pymc_austerity.setup.levels.build import build_grouped
from tests.model.splitting import by_name
from tests.references import mean_and_error
from tests.setup.targets import posed
from tests.setup.test_levels import every_row, share_bounded

N, G, H = 1_500, 32, 6
RNG = np.random.default_rng(7)
GROUP, OTHER, X = RNG.integers(G, size=N), RNG.integers(H, size=N), RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(0.3 * RNG.normal(size=G)[GROUP] + 0.3 * RNG.normal(size=H)[OTHER]))


def crossed():
    """Two factors and one intercept, the prior of which is not normal."""
    a = pm.ZeroSumNormal("a", sigma=pm.HalfNormal("tau"), shape=G)
    c = pm.ZeroSumNormal("c", sigma=0.7, shape=H)
    return pm.StudentT("mu", nu=4.0, sigma=0.5) + X * pm.Normal("b") + a[GROUP] + c[OTHER]


def slopes():
    """Two entries for each level, and coefficients in one vector."""
    design = np.stack([np.ones(N), X], axis=1)
    a = pm.ZeroSumNormal("a", sigma=pm.HalfNormal("tau"), shape=G)
    c = pm.ZeroSumNormal("c", sigma=0.7, shape=G)
    return pm.math.dot(design, pm.Normal("beta", 0.2, 1.5, shape=2)) + a[GROUP] + X * c[GROUP]


def not_centered():
    """Products with their scale."""
    a = pm.HalfNormal("tau") * pm.ZeroSumNormal("a", shape=G)
    return pm.Normal("mu", 1.0) + a[GROUP]


MODELS = {f.__name__: f for f in (crossed, slopes, not_centered)}


@cache
def built(name):
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(MODELS[name]()), observed=COUNTS)
        return model, build_grouped(*grouped_problem(posed(model)))


@pytest.fixture(params=MODELS)
def case(request):
    return built(request.param)


def near(target, rng, scale=0.3):
    anchor = target.sweep.posterior.anchor
    return anchor + scale * rng.normal(size=anchor.size)


def log_density(model, target):
    """Of a point of the sampler: the model's, and that of the means."""
    to = target.coordinates
    scales = [model[its.name].owner.inputs[-2] for its in to.absorbed]
    outputs = [model.logp(), *model.replace_rvs_by_values(scales)]
    evaluate = pytensor.function(model.value_vars, outputs, mode=NUMPY_MODE)

    def at(theta):
        user = by_name(to.outer(theta), model.value_vars, model.initial_point())
        log_p, *sigmas = evaluate(*user.values())
        if to.names:  # products with the scale tau: z = u / tau
            tau = float(np.exp(user["tau_log__"]))
            log_p, sigmas = log_p - (G - 1) * np.log(tau), [tau]
        for its, sigma in zip(to.absorbed, sigmas, strict=True):
            mean = theta[its.levels].mean()
            log_p += norm.logpdf(mean, 0.0, float(np.squeeze(sigma)) / np.sqrt(its.levels.size))
        return float(log_p)

    return at


@pytest.mark.few("slopes")
def test_the_parts_add_up_to_the_log_density(case, rng):
    model, target = case
    its, at = target.sweep.posterior, log_density(model, target)
    for _ in range(3):
        new, old = near(target, rng), near(target, rng)
        total = float(its.row_free_part(new, old)) + its.expansion.difference(new, old)
        total += its.residuals(new, old, every_row(target)).sum()
        assert total == pytest.approx(at(new) - at(old), rel=1e-7, abs=1e-7)


@pytest.mark.exhaustive
def test_terms_of_levels_leave_a_function_of_their_mean(case, rng):
    _, target = case
    its = target.sweep.posterior
    for k, levels in enumerate(its.factors):
        assert not levels.prior.is_all

        def rest(there, here, levels=levels):
            new, old = (p[levels.entries] - levels.anchor for p in (there, here))
            return (
                float(its.row_free_part(there, here))
                - levels.prior_difference(there, here, new, old).sum()
            )

        here = near(target, rng)
        there = here.copy()
        moves = rng.normal(size=levels.entries.shape)
        there[levels.entries] += moves
        others = here.copy()
        others[levels.entries] += moves[::-1]
        assert abs(rest(there, here)) > 1e-4
        assert rest(others, there) == pytest.approx(0.0, abs=1e-8)
        assert {mean.factor for mean in its.means} >= {k}


@pytest.mark.few("slopes", "not_centered")
def test_steps_by_address_are_those_of_python(case, rng):
    """Also where the row-free part has terms that read all levels together."""
    _, target = case
    its = target.sweep.posterior
    state = target.sweep.freeze(target.sweep.init())
    factor = target.sweep._with_hyperparameters()[0]
    entries, theta = its.factors[factor].prior.hyperparameters, near(target, rng, 0.05)
    ends = []
    for compiled in (True, False):
        along = PartlyNonCentered(its, factor, theta, entries)
        assert along._by_address() is not None
        if not compiled:
            along._by_address = lambda: None
        along.walk(state.along[0], 6, np.random.default_rng(2))
        ends.append(along.theta)
    np.testing.assert_allclose(*ends, rtol=1e-10)


@pytest.mark.parametrize("scale", [0.02, 0.1])
def test_no_row_changes_by_more_than_the_bound_of_its_level(case, scale, rng):
    _, target = case
    its, seen = target.sweep.posterior, []
    assert not target.reads_all
    for factor in range(len(its.factors)):
        new, old = near(target, rng, scale), near(target, rng, scale)
        for mean in (0.0, 5.0):  # which rows do not know
            raised = its.means[0].raised(new, mean)
            seen.append(share_bounded(target, factor, raised, old))
    assert max(seen) > 0.0
    np.testing.assert_array_equal(seen[::2], seen[1::2])


def test_the_bound_of_a_level_does_not_depend_on_other_levels(case, rng):
    """Some of the levels are accepted and others are not, which both ways of a move must allow."""
    _, target = case
    its = target.sweep.posterior
    for factor, levels in enumerate(its.factors):
        old = near(target, rng, 0.02)
        new, other = old.copy(), old.copy()
        new[levels.entries] += 0.02 * rng.normal(size=levels.entries.shape)
        other[levels.entries] += 0.02 * rng.normal(size=levels.entries.shape)
        other[levels.entries[0]] = new[levels.entries[0]]
        bounds, others = (its.candidates(factor, at, old).bounds for at in (new, other))
        assert np.isfinite(bounds[0])
        assert others[0] == pytest.approx(bounds[0], rel=1e-12)
        # some of the moves were accepted, and are undone beside others that were rejected
        there, back = old.copy(), other.copy()
        there[levels.entries[0]] = new[levels.entries[0]]
        back[levels.entries[0]] = old[levels.entries[0]]
        assert its.candidates(factor, back, there).bounds[0] == pytest.approx(bounds[0], rel=1e-12)


@pytest.mark.few("not_centered")
def test_means_are_drawn_given_everything_else(case, rng):
    model, target = case
    its, at = target.sweep.posterior, log_density(model, target)
    for mean in its.means:
        here = near(target, rng)
        rng = np.random.default_rng(4)
        points = [mean.drawn(its.factors, here, rng) for _ in range(2_000)]
        found = np.array([point[mean.entries].mean() for point in points])
        there = points[0]
        assert abs(its.residuals(there, here, every_row(target))).max() < 1e-9
        np.testing.assert_allclose(
            target.coordinates.outer(there), target.coordinates.outer(here), atol=1e-9
        )
        steps = np.array([-1.0, 0.0, 1.0])
        low, middle, high = (at(mean.raised(here, step)) for step in steps)
        precision = 2.0 * middle - low - high
        center = here[mean.entries].mean() + 0.5 * (high - low) / precision
        spread = 1.0 / np.sqrt(precision)
        assert abs(found.mean() - center) < 4.0 * spread / np.sqrt(found.size)
        assert found.std() == pytest.approx(spread, rel=4.0 / np.sqrt(2.0 * found.size))


def test_levels_that_are_not_a_factor_are_refused():
    with pm.Model() as model:
        a = pm.ZeroSumNormal("a", shape=G)
        eta = pm.Normal("mu") + a[GROUP] + a[GROUP[::-1]]
        pm.Poisson("y", pm.math.exp(eta), observed=COUNTS)
        problem, coordinates = grouped_problem(posed(model))
        assert not coordinates.absorbed
        with pytest.raises(NoGroupsError):
            build_grouped(problem, coordinates)


# ------------------------------------------------------------------ a normal posterior

TAU, SIGMA = 0.5, 1.5


def normal_posterior(y, prior_sd):
    """Means and standard deviations of the intercept and of all effects."""
    basis = np.linalg.qr(np.eye(G) - 1.0 / G)[0][:, : G - 1]
    design = np.hstack([np.ones((N, 1)), basis[GROUP]])
    prior = np.diag([1.0 / prior_sd**2, *np.full(G - 1, 1.0 / TAU**2)])
    covariance = np.linalg.inv(design.T @ design / SIGMA**2 + prior)
    change = np.zeros((1 + G, G))
    change[0, 0], change[1:, 1:] = 1.0, basis
    mean = change @ covariance @ design.T @ y / SIGMA**2
    return mean, np.sqrt(np.diag(change @ covariance @ change.T))


@pytest.mark.exhaustive
@pytest.mark.parametrize("prior_sd", [1.0, 0.1])
@pytest.mark.few("0.1")
def test_draws_have_the_moments_of_a_normal_posterior(prior_sd, rng):
    y = 0.03 + TAU * rng.normal(size=G)[GROUP] + SIGMA * rng.normal(size=N)
    with pm.Model() as model:
        a = pm.ZeroSumNormal("a", sigma=TAU, shape=G)
        pm.Normal("y", pm.Normal("mu", 0.0, prior_sd) + a[GROUP], SIGMA, observed=y)
        target = build_grouped(*grouped_problem(posed(model)))
    its, rng, draws = target.sweep.posterior, np.random.default_rng(1), []
    theta = its.anchor
    for _ in range(8_000):  # without the joint move, which hides what the others do
        theta = its.means[0].drawn(its.factors, theta, rng)
        moved = move_levels(its, 0, theta, 0.0, rng)
        theta = move_common(its, moved.point, 0.0, rng).point
        summed = theta[its.factors[0].entries[:, 0]]
        draws.append([theta[its.common.entries[0]] + summed.mean(), *(summed - summed.mean())])
    mean, sd = normal_posterior(y, prior_sd)
    standard = (np.array(draws) - mean) / sd
    mean, error = mean_and_error(standard)
    assert error.max() < 0.1
    assert (abs(mean) < 4.5 * error).all()
    square, error = mean_and_error(standard**2)
    assert (abs(square - 1.0) < 4.5 * error).all()
