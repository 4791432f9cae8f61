"""Bad input gets one sentence that names the thing, the reason and the remedy."""

import logging

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import (
    AusterityMH,
    AusterityWarning,
    DataError,
    FireflyMH,
    GroupedMH,
    NotRowwiseError,
    RandomWalkProposal,
    SettingError,
    SettingTypeError,
)
from tests.running import sample
from tests.step_methods.models import normal_mean, normal_regression


def refused(error, *words, model=None, **arguments):
    with model or normal_mean(), pytest.raises(error) as caught:
        AusterityMH(**arguments)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert "\n" not in message.strip()
    assert message.rstrip().endswith(".")


@pytest.mark.parametrize("sampling", ["random", None, 10])
def test_unknown_way_of_sampling_rows(sampling):
    refused(SettingError, f"sampling={sampling!r}", "'windows'", "'fresh'", sampling=sampling)


@pytest.mark.parametrize("choice", [4, "second", True, 1.0])
def test_unknown_control_variates(choice):
    refused(SettingError, "control_variates", "'auto'", control_variates=choice)


def test_control_variates_that_cannot_be_had():
    with pm.Model() as model:
        tau = pm.DiscreteUniform("tau", 0, 1_000)
        pm.Normal(
            "y", pm.math.where(np.arange(1_000) < tau, 0.0, 1.0), 1.0, observed=np.ones(1_000)
        )
    refused(SettingError, "discrete variables", "'auto'", model=model, control_variates=2)
    with model:
        assert "no control variates because there are discrete" in AusterityMH().explain()


@pytest.mark.parametrize("anchor", [3.0, "mode"])
def test_anchor_that_is_no_point(anchor):
    refused(SettingTypeError, "anchor", "dictionary", anchor=anchor)


def test_anchor_that_lacks_a_variable():
    refused(
        SettingError, "'sigma'", "every free", model=normal_regression(), anchor={"beta": [0, 0, 0]}
    )


def test_unknown_variable():
    refused(
        SettingError,
        "'sigm'",
        "not a free variable",
        "'sigma'",
        model=normal_regression(),
        vars=["sigm"],
    )


def test_observed_variable_as_variable():
    refused(SettingError, "'y'", "not a free variable", vars=["y"])


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


def test_no_variable():
    refused(SettingError, "vars=[]", vars=[])


def test_model_without_free_variables():
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=np.zeros(100))
    refused(SettingError, "no free variables", "add a prior", model=model)


def test_unknown_likelihood():
    refused(SettingError, "'z'", "'y'", likelihood=["z"])


def test_no_observed_data():
    with pm.Model() as model:
        pm.Normal("x")
    refused(DataError, "observed", model=model)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_data_that_are_not_finite(bad):
    y = np.random.default_rng(1).normal(size=1_000)
    y[7] = bad
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=y)
    refused(DataError, "y", model=model)


def test_covariate_that_is_not_a_number():
    x = np.random.default_rng(1).normal(size=1_000)
    x[3] = np.nan
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b") * x, 1.0, observed=np.zeros(1_000))
    refused(DataError, "1 of 1,000 rows", model=model)


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
    with normal_mean(n_rows=100):
        step = AusterityMH(epsilon=0.05, batch_size=batch_size)
    assert step.constants["control_variates"] == 2
    assert step.constants["proposal"] == "ProposalMixture"


@pytest.mark.parametrize("proposal", [RandomWalkProposal, 3.0, "random walk"])
def test_proposals_that_cannot_propose(proposal):
    refused(SettingTypeError, "proposal", "RandomWalkProposal()", proposal=proposal)


def test_covariance_of_another_size():
    refused(SettingError, "covariance", "1 entries", proposal=RandomWalkProposal(np.eye(2)))


def test_proposals_that_are_not_finite_are_rejections():
    def leaps(point, rng):
        bad = [np.nan, np.inf, -np.inf, 1e300, point[0] + 0.01][rng.integers(5)]
        return np.full_like(point, bad), 0.0

    model = normal_mean()
    with model:
        step = AusterityMH(proposal=leaps, rng=1, batch_size=100)
    point, n_accepted = model.initial_point(), 0
    for _ in range(300):
        point, (stats,) = step.step(point)
        assert np.isfinite(point["mu"])
        n_accepted += stats["accepted"]
    assert n_accepted > 20


def test_parameters_outside_of_the_support_are_rejections():
    """A scale of the likelihood that a user's model lets become negative."""
    y = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        scale = pm.Normal("scale", 1.0, 1.0, initval=1.0)
        pm.Normal("y", 0.0, scale, observed=y)
        step = AusterityMH(proposal=RandomWalkProposal([4.0], scaling=1.0), tune=False, rng=2)
    point = model.initial_point()
    for _ in range(200):
        point, _ = step.step(point)
        assert point["scale"] > 0


@pytest.mark.parametrize("step_method", [AusterityMH, FireflyMH, GroupedMH])
def test_settings_that_do_not_exist(step_method):
    with normal_mean():
        with pytest.raises(
            SettingTypeError, match=r"no setting 'initialpoint': 'initial_point' may be meant\.$"
        ):
            step_method(initialpoint=None)
        with pytest.raises(SettingTypeError, match=r"'zzz': choose from vars, .*, rng, "):
            step_method(zzz=1)


def test_data_that_are_no_dictionary():
    refused(SettingTypeError, "data of type ndarray is not a dictionary", data=np.ones((99, 3)))
    refused(SettingTypeError, "data= has the key 3, which is not a name", data={"y": "y.npy", 3: 1})


def test_discrete_variables_with_one_entry_per_row():
    with pm.Model() as model:
        which = pm.Bernoulli("which", 0.5, shape=200)
        mean = pm.Normal("mean", 0.0, 1.0, shape=2)
        pm.Normal("y", mean[which], 1.0, observed=np.linspace(-1.0, 1.0, 200))
    refused(SettingError, "'which' is discrete", "pm.Mixture", "vars=['mean']", model=model)
