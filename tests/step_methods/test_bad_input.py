"""Bad input gets one sentence that names the thing, the reason and the remedy."""

import logging

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import (
    AusterityMH,
    AusterityWarning,
    BarkerTest,
    DataError,
    FireflyMH,
    GroupedMH,
    HoeffdingTest,
    NotRowwiseError,
    ProposalMixture,
    RandomWalkProposal,
    SettingError,
    SettingTypeError,
    StudentTTest,
)
from tests.running import built, chain_of, refused_in_a_sentence, sample, walk
from tests.step_methods.models import normal_mean, normal_of, normal_regression, switch_point


def refused(error, *words, model=None, **arguments):
    with model or normal_mean(), refused_in_a_sentence(error, *words):
        AusterityMH(**arguments)


def test_a_start_at_infinity():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", initval=np.inf), 1.0, observed=np.zeros(5))
    refused(DataError, "'mu'", "not finite", "initval", model=model, epsilon=0.05)


OF_A_MEAN = [
    *(
        (SettingError, {"sampling": x}, [f"sampling={x!r}", "'windows'", "'fresh'"])
        for x in ("random", None, 10)
    ),
    *(
        (SettingError, {"control_variates": x}, ["control_variates", "'auto'"])
        for x in (4, "second", True, 1.0)
    ),
    *((SettingTypeError, {"anchor": x}, ["anchor", "dictionary"]) for x in (3.0, "mode")),
    (SettingError, {"anchor": {"mu": 1.0}, "control_variates": None}, ["anchor", "leave one"]),
    (SettingError, {"vars": ["y"]}, ["'y'", "not a free variable"]),
    (SettingError, {"vars": []}, ["vars=[]"]),
    (SettingError, {"likelihood": ["z"]}, ["'z'", "'y'"]),
    *((SettingError, {x: "no"}, [f"{x}='no'", "True or False"]) for x in ("tune", "blocked")),
    *(
        (SettingTypeError, {"proposal": x}, ["proposal", "RandomWalkProposal()"])
        for x in (RandomWalkProposal, 3.0, "random walk")
    ),
    (SettingError, {"proposal": RandomWalkProposal(np.eye(2))}, ["covariance", "1 entries"]),
    (
        SettingError,
        {"proposal": ProposalMixture(), "control_variates": None},
        ["ProposalMixture()", "use RandomWalkProposal()", "control variates"],
    ),
    *((SettingTypeError, {"test": x}, ["test"]) for x in (StudentTTest, "student", 0.05)),
    (
        SettingError,
        {"test": HoeffdingTest(lambda point: 1.0)},
        ["largest_difference(proposed, current)", "two points"],
    ),
    *((SettingTypeError, {"audit": x}, ["audit"]) for x in ("often", None)),
    *(
        (SettingError, {"test": x, "audit": 0.5}, ["audit", "right or wrong"])
        for x in (BarkerTest(), None)
    ),
    *((SettingError, {"max_error": x}, ["max_error", "between 0 and 0.5"]) for x in (0.0, 0.6)),
    (SettingError, {"epsilon": lambda draw: 2.0}, ["epsilon(0)=2.0", "between 0 and 0.5"]),
    (SettingError, {"epsilon": lambda: 0.1}, ["epsilon(0)", "TypeError"]),
    (SettingError, {"compile_kwargs": {"mode": "NUMBAA"}}, ["compile_kwargs", "'NUMBA' may be"]),
    (SettingError, {"compile_kwargs": {"moda": "NUMBA"}}, ["compile_kwargs", "'mode' may be"]),
    (SettingTypeError, {"compile_kwargs": "NUMBA"}, ["compile_kwargs", "dictionary"]),
    (SettingTypeError, {"data": np.ones((99, 3))}, ["data of type ndarray is not a dictionary"]),
    (SettingTypeError, {"data": {"y": "y.npy", 3: 1}}, ["data= has the key 3", "is not a name"]),
]
ZEROS = {"beta": [0.0, 0.0, 0.0]}
OF_A_REGRESSION = [
    (SettingError, {"anchor": ZEROS}, ["'sigma'", "every free"]),
    (SettingError, {"anchor": {"beta": [0.0], "sigma": 1.0}}, ["shape (1,) for 'beta'", "(3,)"]),
    (SettingError, {"anchor": {"beta": [0.0, 0.0, np.nan], "sigma": 1.0}}, ["anchor", "finite"]),
    (SettingError, {"anchor": ZEROS | {"sigma": -1.0}}, ["anchor", "inside of the support"]),
    (SettingError, {"vars": ["sigm"]}, ["'sigm'", "not a free variable", "'sigma'"]),
    *(
        (SettingTypeError, {"rng": x, "blocked": blocked}, ["rng=", "numpy.random.Generator"])
        for x in ("x", -1, 1.5)
        for blocked in (True, False)
    ),
    (SettingError, {"initial_point": {"mu": 0.0}}, ["initial_point", "'beta' is missing"]),
    (
        SettingError,
        {"initial_point": {"beta": [0.0], "sigma_log__": 0.0}},
        ["initial_point", "has shape (1,)"],
    ),
    (SettingTypeError, {"initial_point": 3.0}, ["initial_point", "model.initial_point()"]),
]


@pytest.mark.parametrize(
    ("build", "error", "settings", "words"),
    [
        *((normal_mean, *case) for case in OF_A_MEAN),
        *((normal_regression, *case) for case in OF_A_REGRESSION),
    ],
)
def test_settings_that_cannot_be(build, error, settings, words):
    refused(error, *words, model=build(), **settings)


def test_control_variates_that_cannot_be_had():
    refused(SettingError, "discrete variables", "'auto'", model=switch_point(), control_variates=2)


def model_with_trees(others=True):
    """A model with a variable of the kind that PyMC-BART has, which need not be installed."""

    class BARTRV(type(pm.Normal.rv_op)):
        pass

    class Trees(pm.Normal):
        rv_op = BARTRV()

    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma") if others else 1.0
        pm.Normal("y", Trees("trees", shape=20), sigma, observed=np.zeros(20))
    return model


def test_sums_of_trees():
    refused(SettingError, "'trees'", "PyMC-BART", "vars=['sigma']", model=model_with_trees())
    refused(SettingError, "'trees'", model=model_with_trees(), vars=["trees", "sigma"])
    refused(SettingError, "no other variables", model=model_with_trees(others=False))


def test_model_without_free_variables():
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=np.zeros(100))
    refused(SettingError, "no free variables", "add a prior", model=model)


def test_no_observed_data():
    with pm.Model() as model:
        pm.Normal("x")
    refused(DataError, "observed", model=model)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_data_that_are_not_finite(bad):
    y = np.random.default_rng(1).normal(size=1_000)
    y[7] = bad
    refused(DataError, "y", model=normal_of(y))


def test_start_that_is_impossible():
    with pm.Model() as model:
        upper = pm.Uniform("upper", 0.0, 10.0, initval=1.0)
        pm.Uniform("y", 0.0, upper, observed=np.linspace(0.1, 2.0, 1_000))
    refused(DataError, "y", model=model)


def test_likelihood_that_does_not_split():
    x = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        mu = pm.Normal("b") * x
        pm.Normal("y", mu - mu.mean(), 1.0, observed=x)
    refused(NotRowwiseError, "y", model=model)


def test_one_unknown_per_row():
    with pm.Model() as model:
        rate = pm.Exponential("rate", 1.0, shape=500)
        scale = pm.HalfNormal("scale")
        pm.Normal("y", rate, scale, observed=np.ones(500))
    refused(SettingError, "'rate'", "one entry per row", "vars=['scale']", model=model)
    with model:
        AusterityMH(vars=["scale"])


def test_a_stored_deterministic_with_one_entry_per_row_is_warned_of():
    x = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        mu = pm.Deterministic("mu", pm.Normal("b") * x)
        pm.Normal("y", mu, 1.0, observed=x)
        step = AusterityMH()
    few = {"draws": 2, "tune": 2, "chains": 1}
    with pytest.warns(AusterityWarning, match=r"'mu' has one entry per row.*var_names"):
        sample(step, model, **few)
    assert "mu" not in sample(step, model, var_names=["b"], **few).posterior


def test_probabilities_of_ordered_categories_are_left_out_where_they_are_made():
    x = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        eta = pm.Normal("b") * x
        pm.OrderedLogistic("y", eta=eta, cutpoints=[0.0], observed=(x > 0.0).astype(int))
        step = AusterityMH()
    with pytest.warns(AusterityWarning, match=r"compute_p=False to the distribution of 'y'"):
        sample(step, model, draws=2, tune=2, chains=1)


def test_fewer_rows_than_a_batch_run_exact_and_say_so(caplog):
    model = normal_mean(n_rows=100)
    with model, caplog.at_level(logging.INFO, logger="pymc"):
        logging.getLogger("pymc").propagate = True
        step = AusterityMH(batch_size=500, control_variates=None)
    assert "exact" in step.explain()
    assert "all 100 rows" in step.explain()
    assert any("exact" in record.getMessage() for record in caplog.records)
    _, (stats,) = step.step(model.initial_point())
    assert stats["used_all_rows"]


@pytest.mark.few("40")
@pytest.mark.parametrize("batch_size", ["auto", 40, 500])
def test_few_rows_are_expanded_like_many(batch_size):
    step = built(normal_mean(n_rows=100), epsilon=0.05, batch_size=batch_size)
    assert step.constants["control_variates"] == 2
    assert step.constants["proposal"] == "ProposalMixture"


def test_proposals_that_are_not_finite_are_rejections():
    def leaps(point, rng):
        bad = [np.nan, np.inf, -np.inf, 1e300, point[0] + 0.01][rng.integers(5)]
        return np.full_like(point, bad), 0.0

    model = normal_mean()
    step = built(model, proposal=leaps, rng=1, batch_size=100)
    points, statistics = chain_of(step, model.initial_point(), 300)
    assert np.isfinite(points).all()
    assert sum(stats["accepted"] for stats in statistics) > 20


def test_parameters_outside_of_the_support_are_rejections():
    """A scale of the likelihood that a user's model lets become negative."""
    y = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        scale = pm.Normal("scale", 1.0, 1.0, initval=1.0)
        pm.Normal("y", 0.0, scale, observed=y)
        step = AusterityMH(proposal=RandomWalkProposal([4.0], scaling=1.0), tune=False, rng=2)
    assert (walk(step, model.initial_point(), 200) > 0).all()


@pytest.mark.parametrize("step_method", [AusterityMH, FireflyMH, GroupedMH])
def test_settings_that_do_not_exist(step_method):
    with normal_mean():
        with pytest.raises(
            SettingTypeError, match=r"no setting 'initialpoint': 'initial_point' may be meant\.$"
        ):
            step_method(initialpoint=None)
        with pytest.raises(SettingTypeError, match=r"'zzz': choose from vars, .*, rng, "):
            step_method(zzz=1)


def test_discrete_variables_with_one_entry_per_row():
    with pm.Model() as model:
        which = pm.Bernoulli("which", 0.5, shape=200)
        mean = pm.Normal("mean", 0.0, 1.0, shape=2)
        pm.Normal("y", mean[which], 1.0, observed=np.linspace(-1.0, 1.0, 200))
    refused(SettingError, "'which' is discrete", "pm.Mixture", "vars=['mean']", model=model)


@pytest.mark.parametrize("step_method", [AusterityMH, FireflyMH, GroupedMH])
def test_a_class_is_not_a_step_method(step_method):
    name = step_method.__name__
    with normal_mean(), refused_in_a_sentence(SettingTypeError, f"write step={name}()."):
        pm.sample(step=step_method)
