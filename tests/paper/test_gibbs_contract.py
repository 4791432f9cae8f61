"""AusterityGibbs keeps PyMC's contract, its statistics are right, and bad input is refused."""

import math
import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity import (
    AusterityGibbs,
    DataError,
    NotRowwiseError,
    SettingError,
    StaleDataError,
    diagnostics,
)
from pymc_austerity.paper.gibbs import flipped_at_random
from pymc_austerity.paper.gibbs_sweep import (
    CompiledSweep,
    Outcomes,
    ReferenceSweep,
    statistics_of_sweep,
)
from pymc_austerity.sequential import Decision
from pymc_austerity.step_methods.statistics import of_decision, of_draw
from tests import running
from tests.paper.fields import pairs_grid, regression, triples_field
from tests.references import sequential_t_test
from tests.running import chain_of, draws_of, refused_in_a_sentence
from tests.running import sample as quiet_run

FAST = {"compile_kwargs": {"mode": "FAST_COMPILE"}}
NAMED = {"likelihood": ["factors"]}


@pytest.fixture(scope="module")
def field():
    """Twenty entries, each with 171 of 1,140 factors."""
    return triples_field(spread=0.1, n_entries=20)


@pytest.fixture(scope="module")
def built(field):
    return running.built(field, AusterityGibbs, batch_size=20, audit=0.3, **NAMED)


def sample(step, model, **settings):
    return quiet_run(step, model, **({"draws": 40, "tune": 10} | settings))


def draws(idata, name="x"):
    return draws_of(idata)[name]


# ------------------------------------------------------------------ the compiled sweep


@pytest.mark.few("some")
@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (triples_field(n_entries=12), NAMED),
        (triples_field(n_entries=12, spread=0.6), NAMED | {"relative": True}),
        (regression(), {}),
    ],
    ids=["some", "relative", "all"],
)
def test_compiled_sweeps_decide_as_the_reference_does(model, settings):
    own = {"epsilon": 0.1, "batch_size": 13, "audit": 0.5, "rng": 1}
    step = running.built(model, AusterityGibbs, **own, **settings)
    assert isinstance(step.sweep, CompiledSweep)
    reference = ReferenceSweep(step.factors, step.rule, step.batch_size)
    rng = np.random.default_rng(2)
    for _ in range(25):
        state = rng.integers(0, 2, size=step.start.size)
        other = state.copy()
        plan = step._plan(rng, n_updates=state.size)
        fast, slow = step.sweep(state, plan), reference(other, plan)
        np.testing.assert_array_equal(state, other)
        for name, values in fast._asdict().items():
            np.testing.assert_allclose(values, getattr(slow, name), rtol=1e-6, err_msg=name)


def test_an_update_is_algorithm_1(field, built):
    """Updates against the paper's test, line by line, on the model's own log-potentials."""
    (potential,) = field.replace_rvs_by_values(field.potentials)
    log_potentials = field.compile_fn(potential, inputs=field.value_vars)
    prior = np.linspace(0.3, 0.7, 20)
    factors, rng = built.factors, np.random.default_rng(5)
    for entry in range(20):
        state = rng.integers(0, 2, size=20)
        one, zero = state.copy(), state.copy()
        one[entry], zero[entry] = 1, 0
        plan = built._plan(rng, n_updates=20)
        own = factors.order[factors.starts[entry] :][: factors.sizes[entry]]
        own = np.roll(own, -plan.windows[0])
        differences = factors.functions.rows(one, zero, own, *factors.data)
        expected = log_potentials({"x": one}) - log_potentials({"x": zero})
        np.testing.assert_allclose(np.sort(differences), np.sort(expected[expected != 0.0]))
        threshold = plan.log_odds[0] - np.log(prior[entry] / (1.0 - prior[entry]))
        is_one, *cost = sequential_t_test(differences, np.arange(171), threshold, 0.05, 20)
        alone = plan._replace(entries=np.array([entry]))
        outcomes = built.sweep(state, alone)
        assert state[entry] == is_one
        found = [outcomes.n_rows_used, outcomes.n_looks, outcomes.decision_error]
        np.testing.assert_allclose([values[0] for values in found], cost, atol=1e-12)


def test_pickles_are_small(built):
    pickled = pickle.dumps(built)
    table = 8 * 8 * 1_140
    assert built.factors.tables[0].n_bytes == table
    wide = triples_field(n_entries=40)
    other = running.built(wide, AusterityGibbs, batch_size=20, **NAMED, **FAST)
    assert other.factors.tables[0].n_bytes > 8 * table
    assert abs(len(pickle.dumps(other)) - len(pickled)) < table


def test_dispersed_starts_are_possible_ones():
    rng = np.random.default_rng(1)
    start = np.zeros(12, dtype=np.int64)
    for _ in range(20):
        found = flipped_at_random(start, lambda point: point[:3].sum() == 0, rng)
        assert found[:3].sum() == 0
    np.testing.assert_array_equal(flipped_at_random(start, lambda point: False, rng), start)


def test_data_that_were_set_anew_are_noticed():
    with pm.Model() as model:
        h = pm.Data("h", np.linspace(-1.0, 1.0, 50))
        x = pm.Bernoulli("x", 0.5, shape=5)
        pm.Potential("factors", h * x[np.arange(50) % 5])
        step = AusterityGibbs(**NAMED, **FAST)
        pm.set_data({"h": np.ones(50)})
        with pytest.raises(StaleDataError, match="construct a new AusterityGibbs"):
            sample(step, model, draws=2, tune=0)


# ------------------------------------------------------------------ statistics


def test_statistics_of_a_sweep_are_those_of_its_decisions():
    decisions = [
        Decision(True, 40, 2, 0.01, 1.5, False, True),
        Decision(False, 100, 5, 0.0, -0.2, True, None),
        Decision(False, 20, 1, 0.04, -2.0, False, True),
        Decision(True, 60, 3, 0.02, math.nan, False, True),
    ]
    outcomes = Outcomes(
        *map(np.array, zip(*[d[:5] for d in decisions], strict=True)), np.array([1, -1, 1, 1])
    )._replace(decision_error=np.array([d.decision_error for d in decisions]))
    found = statistics_of_sweep(outcomes, np.full(4, 100))
    expected = of_draw([of_decision(d, 100, scaling=1.0, epsilon=0.05) for d in decisions])
    for name, value in found.items():
        assert value == pytest.approx(expected[name]), name
    assert found["data_fraction"] == 0.55 and not found["audit_agrees"]
    unequal = statistics_of_sweep(outcomes, np.array([40, 100, 80, 60]))
    assert unequal["data_fraction"] == pytest.approx(220 / 280)


def test_statistics_of_a_run(field, built):
    idata = sample(built, field, draws=200)
    stats = idata["sample_stats"]
    assert stats.attrs["n_rows"] == 171 and stats.attrs["n_factors"] == 1_140
    assert stats.attrs["steps_per_draw"] == 20 and stats.attrs["subsampled"] == "factors"
    used = stats["n_rows_used"].values
    np.testing.assert_allclose(stats["data_fraction"].values, used / (20 * 171))
    assert 0.1 < stats["data_fraction"].values.mean() < 0.7
    changed = (np.diff(draws(idata), axis=1) != 0).mean()
    assert stats["accepted"].values.mean() == pytest.approx(changed, abs=0.05)
    assert ((stats["decision_error"] >= 0) & (stats["decision_error"] < 0.05)).all()
    assert 0 < stats["audit_agrees"].values.mean() < 1
    usage = diagnostics.data_usage(idata).loc["all"]
    assert usage["n_decisions"] == 2 * 200 * 20
    assert usage["data_fraction"] == pytest.approx(float(stats["data_fraction"].mean()))
    assert usage["rows_mean"] == pytest.approx(used.mean() / 20)


def test_audits_find_as_many_errors_as_there_are(field):
    """Every decision checked: as often wrong as a sweep of exact updates says."""
    settings = {"epsilon": 0.2, "batch_size": 20, "audit": 1.0}
    step = running.built(field, AusterityGibbs, **settings, **NAMED)
    rng = np.random.default_rng(1)
    exact = ReferenceSweep(step.factors, step.rule, 171)
    wrong = told = 0
    for _ in range(30):
        state = rng.integers(0, 2, size=20)
        plan = step._plan(rng, n_updates=20)
        one = plan._replace(entries=plan.entries[:1])
        truth, found = exact(state.copy(), one), step.sweep(state.copy(), one)
        wrong += truth.flipped[0] != found.flipped[0]
        told += found.exact_flip[0] != found.flipped[0]
        assert found.exact_flip[0] == truth.flipped[0]
    assert wrong == told > 0


# ------------------------------------------------------------------ bad input


def refused(error, *words, model, **arguments):
    with model, refused_in_a_sentence(error, *words):
        AusterityGibbs(**(NAMED | FAST | arguments))


@pytest.mark.parametrize(
    ("error", "arguments", "words"),
    [
        (SettingError, {"epsilon": 0.7}, ["epsilon", "between 0 and 0.5"]),
        (SettingError, {"scan": "sideways"}, ["scan", "'systematic' or 'random'"]),
        (SettingError, {"likelihood": ["nothing"]}, ["'nothing'", "'factors'"]),
        (SettingError, {"vars": ["y"]}, ["'y'", "'x'"]),
    ],
)
def test_settings_that_cannot_be_used(field, error, arguments, words):
    refused(error, *words, model=field, **arguments)


def test_variables_that_are_not_binary():
    refused(SettingError, "'theta'", "Bernoulli", "vars=['x']", model=pairs_grid(), vars=["theta"])
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Potential("factors", mu * np.ones(5))
    refused(SettingError, "no free Bernoulli variable", "AusterityMH", model=model)


def test_no_axis_of_factors():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=3)
        pm.Potential("factors", x.sum() * 0.1)
    refused(NotRowwiseError, "without an axis 0", model=model)
    refused(DataError, "likelihood=['factors']", model=triples_field(), likelihood="auto")


def test_factors_that_read_other_variables():
    with pm.Model() as model:
        x, z = pm.Bernoulli("x", 0.5, shape=3), pm.Bernoulli("z", 0.5, shape=4)
        pm.Potential("factors", x[np.array([0, 1, 2, 1])] * pt.constant([1.0, 2.0, 3.0, 4.0]))
    refused(SettingError, "no factor of 'factors' reads 'z'", "likelihood=", model=model, vars=[z])
    both = running.built(model, AusterityGibbs, **NAMED, **FAST)
    np.testing.assert_array_equal(both.factors.sizes, [1, 2, 1, 0, 0, 0, 0])
    found, _ = chain_of(both, model.initial_point(), 100)
    assert 0.3 < found[:, 3:].mean() < 0.7  # entries without factors follow their prior
