"""Settings that contradict each other, or have no effect beside others, are not passed over."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import (
    AusterityGibbs,
    AusterityMH,
    CrankNicolsonProposal,
    DataError,
    HoeffdingTest,
    ProposalMixture,
    RandomWalkProposal,
    SettingError,
    SettingTypeError,
    StiefelProposal,
    StudentTTest,
)
from tests.running import built
from tests.step_methods.models import groups, normal_mean, normal_regression, switch_point
from tests.step_methods.test_bad_input import refused


def hops(point, rng):
    return point + 0.01 * rng.standard_normal(point.size), 0.0


# ------------------------------------------------------------------ one setting against another


@pytest.mark.parametrize(
    "proposal",
    [
        "auto",
        RandomWalkProposal(),
        ProposalMixture(),
        CrankNicolsonProposal(),
        StiefelProposal(),
        hops,
    ],
)
def test_only_proposals_that_follow_gradients_go_without_a_test(proposal):
    refused(SettingError, "test=None", "LangevinProposal(step_size", test=None, proposal=proposal)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0.05, "max_error": 0.01},  # the default, but written
        {"epsilon": 0.05, "test": StudentTTest(0.1)},
        {"max_error": 0.01, "test": StudentTTest(0.1)},
    ],
)
def test_two_settings_that_say_how_strict_the_test_is(settings):
    refused(SettingError, " and ".join(settings), "give one of them", **settings)


def test_a_default_that_is_written_contradicts_nothing():
    default = {"max_error": None, "test": "auto", "anchor": "auto"}
    built(normal_mean(), epsilon=0.1, control_variates=None, **default)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"control_variates": None}, "control_variates=None"),
        ({"test": HoeffdingTest(1.0)}, "HoeffdingTest"),
        ({"batch_size": 39}, "batch_size=39"),
    ],
)
def test_strata_that_are_not_possible(settings, words):
    refused(SettingError, "sampling='strata'", words, "leave one", sampling="strata", **settings)


def test_strata_where_the_model_has_no_control_variates():
    words = ["discrete variables", "use sampling='auto'"]
    refused(SettingError, "sampling='strata'", *words, model=switch_point(), sampling="strata")


def test_strata_by_name_are_the_default_with_control_variates():
    with normal_mean():
        named, default = AusterityMH(sampling="strata"), AusterityMH(epsilon=0.05)
    assert named.constants["sampling"] == default.constants["sampling"] == "StratifiedWindows"


def test_fresh_rows_are_fresh_with_control_variates_too():
    step = built(normal_mean(), sampling="fresh")
    assert step.anchor is not None
    assert step.constants["sampling"] == "FreshRows"
    assert "Uniform samples of 2,000 rows drawn anew, 500 at a look." in step.explain()


# ------------------------------------------------------------------ the bound of the first look


@pytest.mark.few("700")
@pytest.mark.parametrize("batch_size", [40, 57, 123, 319, 321, 700])
def test_batch_size_bounds_the_first_look_of_strata(batch_size):
    """With rows of high influence, which are read always where there is room for them."""
    rng = np.random.default_rng(1)
    x = rng.standard_t(2, size=5_000)
    with pm.Model() as model:
        slope = pm.Normal("slope")
        pm.Poisson("y", pm.math.exp(0.1 * slope * x), observed=rng.poisson(1.0, size=5_000))
        step = AusterityMH(batch_size=batch_size)
    assert step.constants["sampling"] == "StratifiedWindows"
    assert step.constants["batch_size"] <= batch_size
    counts = np.array(step.constants["stratum_first_counts"])
    sizes = np.array(step.constants["stratum_sizes"])
    assert (counts >= np.minimum(sizes, 10)).all()
    step.set_rng(np.random.default_rng(2))
    _, (stats,) = step.step(model.initial_point())
    assert stats["n_rows_used"] <= batch_size or stats["n_looks"] > 1


def test_a_batch_too_small_for_strata_is_uniform_and_says_so():
    step = built(normal_mean(), batch_size=39)
    assert step.anchor is not None
    assert step.constants["batch_size"] == 39
    assert "Uniform samples of 2,000 rows, 39 at a look, too few for strata." in step.explain()


# ------------------------------------------------------------------ what used to come late


def raises(point, rng):
    raise KeyError("beta")


@pytest.mark.parametrize(
    ("proposal", "error", "words"),
    [
        (lambda point: (point, 0.0), SettingError, "(point, rng)"),
        (raises, SettingError, "KeyError"),
        (lambda point, rng: point, SettingTypeError, "not a pair"),
        (lambda point, rng: (point, 0.0, 0.0), SettingTypeError, "not a pair"),
        (lambda point, rng: (point[:1], 0.0), SettingTypeError, "same shape"),
        (lambda point, rng: (np.zeros(3), 0.0), SettingTypeError, "shape (3,)"),
        (lambda point, rng: (np.full(4, "x"), 0.0), SettingTypeError, "not numeric"),
        (lambda point, rng: (point, "x"), SettingTypeError, "log-ratio of type str"),
        (lambda point, rng: (point, np.zeros(4)), SettingTypeError, "log-ratio of type ndarray"),
        (lambda point, rng: (point, np.nan), SettingError, "log-ratio of nan"),
        (lambda point, rng: (point, np.inf), SettingError, "log-ratio of inf"),
    ],
)
@pytest.mark.few("<lambda>-SettingTypeError-not a pair0", "<lambda>-SettingTypeError-shape (3,)")
def test_functions_that_propose_nothing_of_use(proposal, error, words):
    refused(error, "the proposal", words, model=normal_regression(), proposal=proposal)


def test_a_proposal_that_lacks_a_method():
    class Half:
        def init(self, layout, approximation=None):
            return None

        def propose(self, state, point, rng):
            return point, 0.0

    refused(SettingTypeError, "Half", "lacks tune, freeze, current_scaling", proposal=Half())


def test_a_proposal_of_a_class_is_tried_too():
    class Short(RandomWalkProposal):
        def propose(self, state, point, rng):
            return point[:1], 0.0, state

    refused(SettingTypeError, "same shape", model=normal_regression(), proposal=Short())


# ------------------------------------------------------------------ words


def test_no_model_for_gibbs():
    with pytest.raises(SettingTypeError, match=r"inside of `with pm\.Model"):
        AusterityGibbs()


@pytest.mark.parametrize("step_method", [AusterityMH, AusterityGibbs])
class TestBothStepMethods:
    def test_a_model_that_is_none(self, step_method):
        with pytest.raises(SettingTypeError, match="model='m' is not a model: give"):
            step_method(model="m")

    def test_settings_without_a_name(self, step_method):
        name = step_method.__name__
        with normal_mean(), pytest.raises(SettingTypeError, match=rf"{name}\(epsilon=0.05\)"):
            step_method(["mu"], 0.05)


def test_numbers_and_models_that_are_no_variables():
    model = normal_mean()
    with model, pytest.raises(SettingTypeError, match=r"vars.*as in epsilon=0.05"):
        AusterityMH(0.05)
    with pytest.raises(SettingTypeError, match="give it as model="), model:
        AusterityMH(model)


def test_a_name_is_guessed_or_the_choices_are_listed():
    refused(SettingError, "of the model: 'spread' may be meant.", model=groups(), vars=["sprad"])
    refused(SettingError, "choose from 'spread', 'effect'.", model=groups(), vars=["beta"])


def test_the_longest_potential_may_be_the_likelihood():
    """What the sentence says works."""
    y = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)
        pm.Potential("penalty", -(mu**2))
        pm.Potential("like", -0.5 * (y - mu[0]) ** 2)
    refused(DataError, "if 'like' is the likelihood", "likelihood=['like']", model=model)
    with model:
        assert AusterityMH(likelihood=["like"]).n_rows == 1_000


def test_a_potential_that_is_a_sum():
    y = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        pm.Potential("like", (-0.5 * (y - pm.Normal("mu")) ** 2).sum())
    refused(DataError, "'like'", "leave out its sum over the rows", model=model)
