"""Transitions in compiled code: the draws of Python, whatever the blocks."""

import pickle
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor
import pytest

from pymc_austerity import (
    BarkerTest,
    CrankNicolsonProposal,
    EmpiricalBernsteinTest,
    HoeffdingTest,
    LangevinProposal,
    ProposalMixture,
    RandomWalkProposal,
    StudentTTest,
)
from pymc_austerity.deciding.exact import ExactDecider, RowBoundError
from pymc_austerity.deciding.sampling import AllRowsTogether
from tests.running import assert_same_draws, built, chain_of, sample
from tests.step_methods import models
from tests.step_methods.models import N_ROWS, normal_mean, normal_regression, wide


def logistic(n_rows=4 * N_ROWS, dtype="float64"):
    """Residuals about the mode vary from row to row."""
    return models.logistic(n_rows, [1.0, -1.0, 0.5, 0.0], seed=6, prior_sd=2.0, dtype=dtype)


def heavy_tails(n_rows=2 * N_ROWS):
    """Three unknowns with transforms, in another order than rows read them."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=n_rows)
    with pm.Model() as model:
        nu = pm.Gamma("nu", 4.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        slope = pm.Normal("slope", 0.0, 1.0)
        t = rng.standard_t(4.0, size=n_rows)
        pm.StudentT("y", nu=nu, mu=slope * x, sigma=sigma, observed=x + t)
    return model


def sampling(model, settings, n_tune=150):
    """A step method after tuning, and the point where it is."""
    step = built(model, **settings)
    step.set_rng(np.random.default_rng(11))
    point = model.initial_point()
    for _ in range(n_tune):
        point, _ = step.step(point)
    step.stop_tuning()
    point, _ = step.step(point)  # looks at the test again
    return step, point


def twin(step):
    """A step method in the same state, of random numbers as well."""
    return pickle.loads(pickle.dumps(step))


def as_arrays(statistics):
    return {name: np.array([stats[name] for stats in statistics]) for name in statistics[0]}


def assert_same(first, second):
    np.testing.assert_array_equal(first[0], second[0])
    left, right = as_arrays(first[1]), as_arrays(second[1])
    for name, values in left.items():
        np.testing.assert_array_equal(values, right[name], err_msg=name)


def in_python(step):
    """The same step method, made to do without compiled code."""
    copy = decisions_alone(step)
    copy.decider.compiled = None
    return copy


def decisions_alone(step):
    """The same step method, whose decisions alone are compiled."""
    copy = twin(step)
    copy.python_needed = "a test wants it"
    assert copy.decider.compiled is not None
    return copy


@pytest.fixture(
    scope="module",
    params=[{"audit": 0.2, "epsilon": 0.05}, {"test": "exact"}, {"max_error": 0.01}],
    ids=["test", "exact", "together"],
)
def started(request):
    """A step method for a logistic regression, after tuning, and where its chain is."""
    return sampling(wide() if "max_error" in request.param else logistic(), request.param)


WALK = ProposalMixture([CrankNicolsonProposal(0.7), RandomWalkProposal(covariance="diagonal")], 0.5)


PAPERS = {"control_variates": None, "proposal": RandomWalkProposal(), "batch_size": 300}


@pytest.mark.few("normal_regression-settings2", "logistic-settings4")
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (logistic, {"audit": 0.3, "epsilon": 0.01}),
        (heavy_tails, {"audit": 0.1, "epsilon": 0.001, "proposal": WALK}),
        (normal_regression, {"proposal": CrankNicolsonProposal(0.5), "steps_per_draw": 3}),
        (logistic, {"test": StudentTTest(0.0), "proposal": RandomWalkProposal()}),
        (logistic, {"max_error": 0.01, "control_variates": 1}),
        (heavy_tails, {"epsilon": 0.01, "audit": 0.2, "steps_per_draw": 2}),
        (logistic, {"test": StudentTTest(0.01, relative=True, alpha=0.3), "audit": 0.1}),
        (logistic, {"test": "exact"}),
        (heavy_tails, {"test": "exact", "proposal": WALK, "steps_per_draw": 2}),
        (logistic, {**PAPERS, "sampling": "windows", "epsilon": 0.05, "audit": 0.2}),
        (heavy_tails, {**PAPERS, "sampling": "fresh", "epsilon": 0.1, "steps_per_draw": 2}),
        (logistic, {"sampling": "fresh", "batch_size": 100}),
        (logistic, {**PAPERS, "test": HoeffdingTest(10.0)}),
        (logistic, {**PAPERS, "test": BarkerTest()}),
        (heavy_tails, {"test": BarkerTest(0.7)}),
        (logistic, {**PAPERS, "test": EmpiricalBernsteinTest(1.0), "audit": 0.2}),
    ],
)
def test_draws_are_those_of_python(model, settings):
    step, point = sampling(model(), settings)
    assert not step.python_needed
    python, decisions = in_python(step), decisions_alone(step)
    (points, statistics), (expected, by_python) = chain_of(step, point), chain_of(python, point)
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-11)
    assert len(np.unique(points, axis=0)) > 5
    found, wanted = as_arrays(statistics), as_arrays(by_python)
    same, of_same = chain_of(decisions, point)
    np.testing.assert_allclose(points, same, rtol=1e-9, atol=1e-11)
    for name, values in as_arrays(of_same).items():
        np.testing.assert_allclose(values, found[name], rtol=1e-6, atol=1e-12, err_msg=name)
    assert set(found) == set(wanted)
    for name, values in found.items():
        assert values.dtype == wanted[name].dtype, name
        np.testing.assert_allclose(values, wanted[name], rtol=1e-6, atol=1e-12, err_msg=name)
    left, right = step.sampling_state, python.sampling_state
    assert left.rng == right.rng
    assert repr(left.decision_state) == repr(right.decision_state)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (logistic, {"epsilon": 0.05, "audit": 0.2}),
        (logistic, {"max_error": 0.05}),
        (heavy_tails, {"test": "exact"}),
        (heavy_tails, {**PAPERS, "test": BarkerTest()}),
        (logistic, {**PAPERS, "epsilon": 0.0}),
        (models.switch_point, PAPERS),
    ],
)
def test_the_tuning_phase_is_that_of_python(model, settings):
    whole = model()
    step = built(whole, **settings)
    assert step.decider.compiled is not None
    python = twin(step)
    python.decider.compiled = None
    for each in (step, python):
        each.set_rng(np.random.default_rng(3))
    start = whole.initial_point()
    (points, found), (expected, wanted) = (chain_of(each, start, 120) for each in (step, python))
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-11)
    for name, values in as_arrays(found).items():
        np.testing.assert_allclose(values, as_arrays(wanted)[name], rtol=1e-6, err_msg=name)
    left, right = step.decision_state, python.decision_state
    if isinstance(step.decider, ExactDecider):
        assert left.inflation.n_candidates > 0
        for one, other in zip(left.inflation, right.inflation, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    else:
        assert (left.n_decisions, len(left.trial)) == (right.n_decisions, len(right.trial))


@pytest.mark.parametrize("started", [{"audit": 0.2, "epsilon": 0.05}], indirect=True)
def test_first_looks_that_have_grown_are_those_of_python(started):
    step = twin(started[0])
    larger = step.decider.sampling.with_first_look(3 * step.decider.sampling.strata.n_first)
    step.decider.state.batch_size = larger.strata.n_first
    python = in_python(step)
    (points, statistics), (expected, by_python) = (
        chain_of(step, started[1]),
        chain_of(python, started[1]),
    )
    np.testing.assert_allclose(points, expected, rtol=1e-9, atol=1e-11)
    n_rows = as_arrays(statistics)["n_rows_used"]
    np.testing.assert_array_equal(n_rows, as_arrays(by_python)["n_rows_used"])
    assert n_rows.min() == larger.strata.n_first


def test_blocks_of_any_length_give_the_same_draws(started):
    step, point = started
    single = chain_of(twin(step), point, between=dict)  # a new dictionary: nothing is made ahead
    assert_same(chain_of(twin(step), point), single)


def test_points_are_dictionaries_as_pymc_makes_them(started):
    step, point = started
    following, _ = twin(step).step(point)
    assert list(following) == list(point)
    for name, value in following.items():
        assert type(value) is np.ndarray
        assert value.shape == point[name].shape and value.dtype == point[name].dtype


@pytest.mark.parametrize("n_before", [1, 2, 9, 40])
def test_the_state_within_a_block_is_that_of_the_last_draw(started, n_before):
    step, point = twin(started[0]), started[1]
    single = twin(step)
    for _ in range(n_before):
        point, _ = step.step(point)
    chain_of(single, started[1], n_before, between=dict)
    state, expected = step.sampling_state, single.sampling_state
    assert state.rng == expected.rng
    assert repr(state.decision_state) == repr(expected.decision_state)
    if hasattr(state.proposal_state, "chosen"):
        assert state.proposal_state.chosen == expected.proposal_state.chosen
    copy, first = twin(step), chain_of(step, point)
    assert_same(chain_of(copy, point), first)
    step.sampling_state = state
    np.testing.assert_array_equal(chain_of(step, point)[0], first[0])


def test_a_point_that_others_move_is_gone_on_from(started):
    """As in a compound step: the draws that were made ahead are taken back."""

    def moved():
        n = 0

        def between(point):
            nonlocal n
            n += 1
            return {k: v + 0.01 for k, v in point.items()} if n % 13 == 0 else point

        return between

    def copied(between):
        return lambda point: dict(between(point))

    step, point = started
    blocks = chain_of(twin(step), point, between=moved())
    assert_same(blocks, chain_of(twin(step), point, between=copied(moved())))


def test_audits_do_not_change_the_draws(started):
    step, point = started
    if isinstance(step.decider, ExactDecider):
        pytest.skip("exact decisions are not checked")
    never, always = twin(step), twin(step)
    never.decider.audits.share, always.decider.audits.share = 0.0, 1.0
    (points, unseen), (same, seen) = chain_of(never, point), chain_of(always, point)
    np.testing.assert_array_equal(points, same)
    assert not any(stats["audited"] for stats in unseen)
    decided = [stats for stats in seen if stats["n_looks"]]
    assert all(stats["n_audited"] == 1 for stats in decided) and len(decided) > 50


def test_several_transitions_a_draw_are_the_same_transitions(started):
    step, point = started
    every, third = twin(step), twin(step)
    third.steps_per_draw = 3
    points, statistics = chain_of(every, point)
    thinned, summed = chain_of(third, point, 20)
    np.testing.assert_array_equal(thinned, points[2::3])
    used = as_arrays(statistics)["n_rows_used"].reshape(-1, 3).sum(axis=1)
    np.testing.assert_array_equal(as_arrays(summed)["n_rows_used"], used)


def test_points_in_single_precision():
    with pytensor.config.change_flags(floatX="float32"):
        model = logistic(dtype="float32")
        step, point = sampling(model, {})
        assert not step.python_needed and point["beta"].dtype == np.float32
        python = in_python(step)
        (points, _), (expected, _) = chain_of(step, point, 20), chain_of(python, point, 20)
    assert points.dtype == np.float32
    np.testing.assert_allclose(points, expected, rtol=1e-4, atol=1e-5)


def steps_until_refused(step, point):
    points = []
    try:
        for _ in range(500):
            point, _ = step.step(point)
            points.append(point["beta"])
    except RowBoundError as error:
        return np.array(points), str(error)
    pytest.fail("no bound was violated")


def test_a_bound_that_does_not_hold_is_refused_by_python():
    step, point = sampling(logistic(N_ROWS), {"test": "exact"})
    step.target.sampling.groups.largest[:] *= 0.05
    python = in_python(step)
    (points, words), (expected, same_words) = (
        steps_until_refused(each, point) for each in (step, python)
    )
    np.testing.assert_allclose(points, expected, rtol=1e-9)
    assert words == same_words and len(points) > 0


own_test = SimpleNamespace(stops=lambda evidence: True, error=lambda evidence: 0.1)


def own_proposal(point, rng):
    return point + 0.01 * rng.standard_normal(point.size), 0.0


@pytest.mark.parametrize(
    ("model", "settings", "why"),
    [
        (normal_regression, {"proposal": own_proposal}, "UserProposal has no compiled"),
        (normal_regression, {"proposal": LangevinProposal()}, "LangevinProposal has no compiled"),
        (normal_mean, {"control_variates": None}, "all rows are read"),
        (models.switch_point, PAPERS, "some variables are discrete"),
        (normal_mean, {"test": own_test}, "the test has no compiled"),
        (normal_mean, {"test": HoeffdingTest(lambda new, old: 9.0)}, "its bound is a function"),
        (normal_mean, {"epsilon": lambda draw: 0.1}, "epsilon is a function"),
        (normal_regression, {"vars": ["beta"]}, "other step methods move other variables"),
    ],
)
@pytest.mark.few(
    "normal_mean-settings2-all rows are read",
    "normal_mean-settings4-the test has no compiled",
    "normal_mean-settings6-epsilon is a function",
)
def test_python_is_used_where_it_has_to_be(model, settings, why):
    step = built(model(), **settings)
    assert why in step.explain()
    assert step.constants["transitions"] == "Python"


def test_who_makes_the_transitions_is_said(started):
    step, _ = started
    is_together = isinstance(step.target.sampling, AllRowsTogether)
    words = "64 at a time" if is_together else "after tuning are made in compiled code"
    assert words in step.explain()
    assert step.constants["transitions"] == "compiled"


def test_chains_of_a_run_are_walks_step_by_step():
    """Blocks in `pm.sample`, one chain after the other, and single steps."""
    model = logistic()
    step = built(model)
    blocks = sample(step, model, draws=70, tune=20)
    in_blocks = step.step
    step.step = lambda point: in_blocks(dict(point))
    assert_same_draws(blocks, sample(step, model, draws=70, tune=20))
