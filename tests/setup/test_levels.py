"""Set-up of models with groups, against brute force on all rows."""

from dataclasses import replace
from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy import sparse

from pymc_austerity.deciding.exact import StoredResiduals
from pymc_austerity.levels import PartlyNonCentered
from pymc_austerity.levels.moves import decide_levels, move_common, move_levels
from pymc_austerity.model.bounds import NoBoundError
from pymc_austerity.setup.compiled_target import KernelOnRows
from pymc_austerity.setup.levels import anchor, blocks, factors, grouped_model
from pymc_austerity.setup.levels.anchor import NoGroupsError
from pymc_austerity.setup.levels.build import build_grouped
from tests.model.splitting import by_name
from tests.references import slopes_of
from tests.setup.targets import grouped
from tests.step_methods.models import many_levels, normal_mean

N, G = 1_500, 32
RNG = np.random.default_rng(7)
GROUP, X = RNG.integers(0, G, size=N), RNG.normal(size=(N, 2))


def crossed():
    """Two factors, one of which has a level without rows; nothing is common."""
    other = RNG.integers(0, 6, size=N)
    y = RNG.poisson(np.exp(0.3 * RNG.normal(size=G)[GROUP] + 0.3 * RNG.normal(size=6)[other]))
    with pm.Model() as model:
        tau = pm.HalfNormal("tau")
        a = pm.Normal("a", 0.0, tau, shape=G)
        c = pm.Normal("c", 0.0, 1.0, shape=7)
        pm.Poisson("y", pm.math.exp(a[GROUP] + c[other]), observed=y)
    return model


def slopes():
    """Two entries for each level, with a prior of several variables."""
    effects = RNG.normal(size=(G, 2))
    eta = effects[GROUP, 0] + effects[GROUP, 1] * X[:, 0]
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)
        ab = pm.MvNormal("ab", mu, cov=np.array([[1.0, 0.3], [0.3, 0.5]]), shape=(G, 2))
        b = pm.Normal("b")
        p = ab[GROUP, 0] + ab[GROUP, 1] * X[:, 0] + b * X[:, 1]
        pm.Bernoulli("y", logit_p=p, observed=RNG.random(N) < 1.0 / (1.0 + np.exp(-eta)))
    return model


def heavy_tails():
    """A prior that is not normal, and rows with two predictors."""
    with pm.Model() as model:
        s, sigma = pm.HalfNormal("s"), pm.HalfNormal("sigma")
        a = pm.StudentT("a", nu=4.0, mu=0.0, sigma=s, shape=G)
        y = RNG.standard_t(4, size=G)[GROUP] + RNG.normal(size=N)
        pm.Normal("y", a[GROUP], sigma, observed=y)
    return model


def not_centered():
    """Two entries for each level, with a covariance of their own, beside standard normal ones."""
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", shape=2)
        a = tau * pm.Normal("z", shape=(G, 2))
        eta = a[GROUP, 0] + a[GROUP, 1] * X[:, 0] + X[:, 1] * pm.Normal("b")
        pm.Poisson("y", pm.math.exp(eta), observed=RNG.poisson(1.0, size=N))
    return model


MODELS = {
    "logistic": lambda: many_levels(2_000),
    "crossed": crossed,
    "slopes": slopes,
    "heavy tails": heavy_tails,
    "not centered": not_centered,
}


@cache
def built(name):
    return grouped(MODELS[name]())


@pytest.fixture(params=MODELS)
def case(request):
    return built(request.param)


def near(target, scale=0.3):
    return target.sweep.posterior.anchor + scale * RNG.normal(size=target.coordinates.start.size)


def log_volume(change, point):
    """Of a unit cube after a change of the point, by differences."""
    return np.linalg.slogdet(slopes_of(change, point, 1e-4))[1]


def every_row(target):
    return np.arange(target.source.n_rows)


@pytest.mark.few("logistic")
def test_the_parts_add_up_to_the_log_density(case):
    problem, target = case
    its, model = target.sweep.posterior, problem.model
    log_density, outer = model.compile_logp(), target.coordinates.outer

    def at(theta):
        point = by_name(outer(theta), model.value_vars, problem.prepared.point)
        return log_volume(outer, theta) + float(log_density(point))

    for _ in range(3):
        new, old = near(target), near(target)
        total = float(its.row_free_part(new, old)) + its.expansion.difference(new, old)
        total += its.residuals(new, old, every_row(target)).sum()
        assert total == pytest.approx(at(new) - at(old), rel=1e-7, abs=1e-7)


def test_the_anchor_is_a_mode_of_what_rows_read(case):
    problem, target = case
    its = target.sweep.posterior
    slope = its.expansion.gradient + problem.row_free_derivatives.gradient(its.anchor)[1]
    touched = touched_by_rows(its)
    sds = 1.0 / np.sqrt(-its.expansion.hessian.diagonal()[touched] + 1e-9)
    assert (abs(slope[touched]) * np.minimum(sds, 1.0)).max() < 0.1


def test_the_anchor_has_the_spread_of_levels_far_from_the_start():
    """At the initial point the mean is too large by a factor of 8, and levels look alike there."""
    rng = np.random.default_rng(3)
    group = np.arange(40_000) % 40
    effect = rng.normal(0.0, 0.3, size=40)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfNormal("tau", 5.0)
        a = pm.Normal("a", mu, tau, shape=40)
        pm.Poisson("y", pm.math.exp(a[group]), observed=rng.poisson(np.exp(effect[group] - 2.0)))
    problem, target = grouped(model)
    anchor, start = target.sweep.posterior.anchor, problem.prepared.point
    place = by_name(anchor, problem.variables, start)
    assert np.exp(place["tau_log__"]) == pytest.approx(effect.std(), rel=0.2)
    np.testing.assert_allclose(place["a"], effect - 2.0, atol=0.4)  # 4 sds of a level


def test_sums_do_not_depend_on_the_blocks(monkeypatch):
    problem, target = built("logistic")
    monkeypatch.setattr(grouped_model, "LARGEST_BLOCK", 60)
    again = build_grouped(problem, target.coordinates).sweep.posterior.expansion
    expected = target.sweep.posterior.expansion
    np.testing.assert_allclose(again.gradient, expected.gradient, atol=1e-7)
    np.testing.assert_allclose(again.hessian.toarray(), expected.hessian.toarray(), atol=1e-7)


@pytest.mark.parametrize("n_others", [0, 1, 5])
def test_levels_are_eliminated_first(n_others, rng):
    levels, size = (7, 2), 14 + n_others
    matrix = rng.normal(size=(size, size))
    matrix = matrix @ matrix.T + size * np.eye(size)
    matrix[:14, :14] *= np.kron(np.eye(7), np.ones((2, 2)))
    right = rng.normal(size=size)
    found = anchor.solved(sparse.csr_array(matrix), right, levels)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right))
    matrix[:2] = matrix[:, :2] = 0.0
    with pytest.raises(anchor.NoGroupsError, match="singular"):
        anchor.solved(sparse.csr_array(matrix), right, levels)


def touched_by_rows(its):
    levels = [levels.entries.ravel() for levels in its.factors]
    return np.sort(np.concatenate([*levels, *([its.common.entries] if its.common else [])]))


def precision_and_slope(problem, its, point):
    """Of the normal approximation: rows are expanded at the anchor, the prior at a point."""
    slope = problem.row_free_derivatives.gradient
    prior = slopes_of(lambda x: slope(x)[1], point, 1e-4)
    precision = -(its.expansion.hessian.toarray() + prior)
    return precision, its.expansion.slope(point, np.arange(point.size)) + slope(point)[1]


def test_levels_have_terms_and_derivatives_of_their_own(case):
    _, target = case
    its = target.sweep.posterior
    for levels in its.factors:
        here = near(target)
        chosen = RNG.random(len(levels.entries)) < 0.5
        there = here.copy()
        there[levels.entries[chosen]] += RNG.normal(size=levels.entries[chosen].shape)
        new, old = (p[levels.entries] - levels.anchor for p in (there, here))
        changes = levels.prior_difference(there, here, new, old)
        assert changes.sum() == pytest.approx(float(its.row_free_part(there, here)))
        np.testing.assert_allclose(changes[~chosen], 0.0, atol=1e-12)
        gradients, hessians = levels.prior.derivatives(here)
        step = np.zeros_like(here)
        step[levels.entries[:, 0]] = 1e-5
        slopes = (levels.prior.terms(here + step) - levels.prior.terms(here - step)) / 2e-5
        np.testing.assert_allclose(gradients[:, 0], slopes, rtol=1e-4, atol=1e-5)
        rise = (levels.prior.derivatives(here + step)[0] - gradients) / 1e-5
        np.testing.assert_allclose(hessians[:, :, 0], rise, rtol=2e-3, atol=2e-3)


def test_expansions_of_levels_add_up(case):
    _, target = case
    its = target.sweep.posterior
    for levels in its.factors:
        here = near(target)
        there = here.copy()
        there[levels.entries] += RNG.normal(size=levels.entries.shape)
        slopes = levels.slopes(here - its.anchor)
        new, old = (p[levels.entries] - levels.anchor for p in (there, here))
        total = levels.expansion(slopes, new, old).sum()
        assert total == pytest.approx(its.expansion.difference(there, here))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "heavy tails"])
@pytest.mark.parametrize("scale", [0.02, 0.2, 2.0])
def test_no_row_changes_by_more_than_the_bound_of_its_level(name, scale):
    _, target = built(name)
    its = target.sweep.posterior
    assert not target.reads_all
    shares = []
    for factor, levels in enumerate(its.factors):
        for number in range(6):
            new, old = near(target, scale), near(target, scale)
            if number % 2:  # the levels alone
                own = new[levels.entries]
                new = old.copy()
                new[levels.entries] = own
            shares.append(share_bounded(target, factor, new, old))
    assert scale > 1.0 or max(shares) > 0.0


def share_bounded(target, factor, new, old):
    """Share of the rows that have a bound, which all keep."""
    its, of_levels = target.sweep.posterior, target.sweep.posterior.factors[factor].rows
    bounds = np.repeat(its.candidates(factor, new, old).bounds, np.diff(of_levels.starts))
    rows = every_row(target) if of_levels.positions is None else of_levels.positions
    assert (abs(its.residuals(new, old, rows)) <= bounds + 1e-9).all()
    return np.isfinite(bounds).mean()


@pytest.mark.parametrize("name", ["logistic", "slopes"])
def test_common_entries_are_approximated_given_the_levels(name):
    problem, target = built(name)
    its = target.sweep.posterior
    own = its.common.entries
    precision, _ = precision_and_slope(problem, its, its.anchor)
    given = np.linalg.inv(precision[np.ix_(own, own)])
    np.testing.assert_allclose(its.common.root @ its.common.root.T, given, rtol=1e-5)
    np.testing.assert_allclose(
        its.common.inverse_root @ its.common.root, np.eye(own.size), atol=1e-9
    )


@pytest.mark.parametrize("is_correlated", [False, True])
def test_common_entries_are_approximated_given_their_scale(is_correlated):
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        if is_correlated:
            b = pm.MvNormal("b", np.zeros(2), cov=scale**2 * np.array([[1.0, 0.6], [0.6, 1.0]]))
        else:
            b = pm.Normal("b", 0.0, scale, shape=2)
        eta = pm.Normal("a", shape=G)[GROUP] + X @ b
        pm.Poisson("y", pm.math.exp(eta), observed=RNG.poisson(1.0, size=N))
    problem, target = grouped(model)
    its, own = target.sweep.posterior, target.sweep.posterior.common.entries
    for log_scale in (-6.0, 0.5):
        there = its.anchor.copy()
        there[0] = log_scale  # by now the prior is tighter than the rows are, or says nothing
        precision, _ = precision_and_slope(problem, its, there)
        given = its.common.given(there)
        expected = np.linalg.inv(precision[np.ix_(own, own)])
        np.testing.assert_allclose(given.root @ given.root.T, expected, rtol=1e-5)
        np.testing.assert_allclose(given.inverse_root @ given.root, np.eye(2), atol=1e-9)


def test_what_is_moved_jointly_is_approximated_without_the_levels_of_the_first_factor(case):
    """The coordinates along the directions given the rest: normal in all entries, conditioned."""
    problem, target = case
    its, joint = target.sweep.posterior, target.sweep.joint
    touched, theta = touched_by_rows(its), near(target)
    at_anchor = theta.copy()
    at_anchor[touched] = its.anchor[touched]
    precision, slope = precision_and_slope(problem, its, at_anchor)
    covariance = np.linalg.inv(precision[np.ix_(touched, touched)])
    place = np.searchsorted(touched, joint.entries)
    first, directions = its.factors[0].entries, joint.directions
    assert sorted([*first.ravel(), *joint.entries]) == list(touched)
    coordinates, left = joint.split(its, theta)
    np.testing.assert_allclose(joint.duals.T @ directions, np.eye(coordinates.size), atol=1e-9)
    moved = theta[joint.entries] - its.anchor[joint.entries]
    np.testing.assert_allclose(left + directions @ coordinates, moved, atol=1e-12)
    found = joint.normal(its, theta, left)
    marginal = np.linalg.inv(covariance[np.ix_(place, place)])
    along = directions.T @ marginal @ directions
    np.testing.assert_allclose(found.root[0] @ found.root[0].T, along, rtol=1e-4, atol=1e-4)
    mean = (covariance @ slope[touched])[place]
    of_rest = directions.T @ marginal @ (mean - left) + joint.shift
    np.testing.assert_allclose(found.mean[0], np.linalg.solve(along, of_rest), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["logistic", "slopes", "not centered"])
def test_joint_moves_are_made_as_often_as_gibbs_moves_would_stay(name):
    """Two blocks: the rate at which a Gibbs sampler of the normal approximation converges."""
    problem, target = built(name)
    its, sweep = target.sweep.posterior, target.sweep
    assert len(its.factors) == 1
    precision, _ = precision_and_slope(problem, its, its.anchor)
    levels, common = its.factors[0].entries.ravel(), its.common.entries
    there = np.linalg.solve(precision[np.ix_(levels, levels)], precision[np.ix_(levels, common)])
    back = np.linalg.solve(precision[np.ix_(common, common)], precision[np.ix_(common, levels)])
    rate = abs(np.linalg.eigvals(back @ there)).max()
    assert sweep.shares.joint == pytest.approx(max(rate, 0.1), rel=1e-3)


@pytest.mark.exhaustive
def test_levels_are_taken_along_as_often_as_gibbs_moves_of_the_spread_would_stay():
    """Levels with the rows' precision 1 and a prior with the precision 1 / 4 or 4."""
    shares = []
    for tau in (0.5, 2.0):
        with pm.Model() as model:
            mu = pm.Normal("mu")
            a = pm.Normal("a", mu, tau, shape=40)
            pm.Normal("y", a[np.arange(160) % 40], 2.0, observed=RNG.normal(size=160))
        shares.append(grouped(model)[1].sweep.shares.along[0])
    assert shares == pytest.approx([1.0 - 0.2**2, 1.0 - 0.8**2], rel=1e-6)


def test_moves_of_levels_with_another_prior_are_always_made():
    assert built("heavy tails")[1].sweep.shares.along == (1.0,)


@pytest.mark.parametrize("name", ["logistic", "crossed"])
def test_gradients_of_rows_are_shifted_by_the_uncertainty_of_levels(name):
    """The mean gradient along directions over many draws of the levels, and the expansion."""
    _, target = built(name)
    its, joint = target.sweep.posterior, target.sweep.joint
    step, rise, point = 1e-4, [], its.anchor
    for _ in range(60):
        for _ in range(4):
            for factor in range(len(its.factors)):
                point = move_levels(its, factor, point, 0.0, RNG).point
        along = PartlyNonCentered(its, 0, point, joint.entries)
        to, back = (
            [along.led_to(point[joint.entries] + s * step * w) for w in joint.directions.T[:3]]
            for s in (1, -1)
        )
        rise.append(
            [its.residuals(*pair, every_row(target)).sum() for pair in zip(to, back, strict=True)]
        )
    rise = np.array(rise) / (2.0 * step)
    error = rise.std(axis=0, ddof=1) * np.sqrt(1.0 / 60 + 1.0 / 3)  # the shift is of three draws
    assert (abs(rise.mean(axis=0) - joint.shift[:3]) < 5.0 * error + 1e-6).all()
    assert abs(rise.mean(axis=0)).max() > 0.0


@pytest.mark.parametrize("name", MODELS)
def test_compiled_weights_are_those_of_python(name):
    """With the same random numbers, for candidates and for rows that are read as they are."""
    _, target = built(name)
    its = target.sweep.posterior
    assert isinstance(its.residuals, KernelOnRows)
    here, there = near(target), near(target)
    python = replace(its, residuals=StoredResiduals(its.residuals.kernel, target.source))
    for factor, levels in enumerate(its.factors):
        known = np.zeros(len(levels.entries))
        for inflation in (1.0, 3.0, 1e9):
            made, expected = (
                decide_levels(p, factor, (there, here), known, np.random.default_rng(3), inflation)
                for p in (its, python)
            )
            np.testing.assert_allclose(made.log_ratio, expected.log_ratio, rtol=1e-12)
            np.testing.assert_array_equal(made.ratios, expected.ratios)
            assert made.n_rows == expected.n_rows


def test_many_rows_that_lie_apart_are_copied(monkeypatch):
    _, target = built("logistic")
    its, rows = target.sweep.posterior, every_row(target)[::50]
    points = near(target), near(target)
    expected = its.residuals(*points, rows)
    monkeypatch.setattr("pymc_austerity.setup.compiled_target.MOST_APART", 1)
    monkeypatch.setattr("pymc_austerity.setup.compiled_target.evaluate_rows", None)
    np.testing.assert_allclose(its.residuals(*points, rows), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["crossed", "slopes"])
def test_moves_along_with_levels_are_decided_as_if_these_were_integrated_out(name):
    """Rows are expanded and the prior is normal, so that the ratio does not depend on levels."""
    problem, target = built(name)
    its = target.sweep.posterior
    levels, entries = its.factors[0], its.factors[0].prior.hyperparameters
    here = near(target)
    there = here[entries] + 0.1 * RNG.normal(size=entries.size)

    def log_marginal(values):
        point = here.copy()
        point[entries], point[levels.entries] = values, levels.anchor
        precision, slope = precision_and_slope(problem, its, point)
        own = levels.entries.ravel()
        precision, slope = precision[np.ix_(own, own)], slope[own]
        log_det = np.linalg.slogdet(precision)[1]
        at_mode = 0.5 * slope @ np.linalg.solve(precision, slope) - 0.5 * log_det
        return at_mode + float(its.row_free_part(point, its.anchor))

    expected = log_marginal(there) - log_marginal(here[entries])
    for log_ratio, accepts in ((1e-3 - expected, True), (-1e-3 - expected, False)):
        along = PartlyNonCentered(its, 0, here, entries)
        assert along.move(there, log_ratio, 0.0) is accepts
    stayed = along.decide(RNG)
    assert stayed.point is here and (stayed.accepted, stayed.n_rows) == (0.0, 0)
    tilt = RNG.normal(size=entries.size)
    expected += float(tilt.dot(there - here[entries]))
    rows_say_nothing = replace(its, residuals=lambda proposed, current, rows: np.zeros(rows.size))
    for log_ratio, accepts in ((-1e-3 - expected, False), (1e-3 - expected, True)):
        along = PartlyNonCentered(rows_say_nothing, 0, here, entries, tilt)
        assert along.move(there, log_ratio, 0.0) is accepts
    assert along.decide(RNG).log_ratio == pytest.approx(-tilt.dot(there - here[entries]))


@pytest.mark.parametrize("name", MODELS)
def test_gradients_beyond_the_expansion_are_those_along_the_moves(name):
    _, target = built(name)
    its, sweep = target.sweep.posterior, target.sweep
    point, every = near(target), every_row(target)

    def beyond(there):
        return its.residuals(there, point, every).sum()

    rest = slopes_of(beyond, point, 1e-4)

    def along(factor, entries):
        moves = PartlyNonCentered(its, factor, point, entries)
        return slopes_of(lambda values: beyond(moves.led_to(values)), point[entries], 1e-4)

    for factor, levels in enumerate(its.factors):
        found = blocks._along_hyperparameters(its, factor, point, rest)
        expected = along(factor, levels.prior.hyperparameters)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    if sweep.joint is not None:
        found = blocks._along_directions(its, sweep.joint, point, rest)
        expected = along(0, sweep.joint.entries) @ sweep.joint.directions
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.exhaustive
def test_common_entries_move_about_the_mean_that_levels_leave_them():
    """Without what is beyond the expansion the mean is several standard deviations away."""
    _, target = grouped(few_rows_each())
    its, rng = target.sweep.posterior, np.random.default_rng(2)
    assert np.abs(its.common.root.T @ its.common.shift).max() > 1.0

    def log_ratios(posterior):
        found = []
        for _ in range(20):
            point = posterior.anchor.copy()
            for _ in range(3):
                point = move_levels(posterior, 0, point, 0.0, rng).point
            moved = move_common(posterior, point, 0.0, rng, inflation=1e12)  # reads all rows
            found.append(moved.log_ratio)
        return np.array(found)

    with_it = log_ratios(its)
    no_shift = replace(its, common=replace(its.common, shift=np.zeros_like(its.common.shift)))
    assert with_it.std() < 0.4
    assert log_ratios(no_shift).std() > 0.8


def few_rows_each():
    """Four rows of each of 400 levels, whose posteriors are far from normal."""
    rng, n_levels = np.random.default_rng(5), 400
    group, x = np.repeat(np.arange(n_levels), 4), rng.normal(1.0, 1.0, size=4 * n_levels)
    eta = rng.normal(1.0, 1.0, size=n_levels)[group] + 0.7 * x
    with pm.Model() as model:
        a = pm.Normal("a", pm.Normal("mu"), pm.HalfNormal("tau"), shape=n_levels)
        y = rng.random(x.size) < 1.0 / (1.0 + np.exp(-eta))
        pm.Bernoulli("y", logit_p=a[group] + pm.Normal("b") * x, observed=y)
    return model


def test_many_moves_with_levels_along_read_rows_once():
    _, target = built("logistic")
    its = target.sweep.posterior
    levels = its.factors[0]
    entries = levels.prior.hyperparameters
    along = PartlyNonCentered(its, 0, its.anchor, entries)
    moved = []
    for _ in range(10):
        there = along.theta[entries] + 0.01 * RNG.normal(size=entries.size)
        moved.append(along.move(there, 0.0, -RNG.standard_exponential()))
    assert any(moved)
    end = along.theta
    _, before = its.level_normals(0, its.anchor)
    _, after = its.level_normals(0, end)
    kept = before.standard(np.zeros_like(levels.anchor))
    np.testing.assert_allclose(after.standard(end[levels.entries] - levels.anchor), kept, atol=1e-9)
    result = along.decide(RNG)
    assert result.point is (end if result.accepted else its.anchor)


def test_rows_without_bounds_are_all_read(monkeypatch):
    def none(*args):
        raise NoBoundError("no bound")

    monkeypatch.setattr(factors, "third_derivative_constants", none)
    _, target = grouped(heavy_tails())
    its = target.sweep.posterior
    assert target.reads_all
    _, _, uses = target.sweep.step(its.anchor, target.sweep.init(), RNG, tuning=False)
    assert uses["a"].n_rows == N


@pytest.mark.parametrize(
    ("model", "reason"),
    [(many_levels(n_levels=2), "no factor has 3 levels"), (normal_mean(), "no factor was found")],
)
def test_says_why_there_are_no_groups(model, reason):
    with pytest.raises(NoGroupsError, match=reason):
        grouped(model)
