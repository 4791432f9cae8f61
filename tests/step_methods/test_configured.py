"""Step methods that are written outside of a model."""

import copy
import pickle

import pytest

from pymc_austerity import AusterityMH, FireflyMH, GroupedMH, SettingError, SettingTypeError
from tests.running import assert_same_draws, built, sample
from tests.step_methods.models import normal_mean, normal_regression


def test_draws_are_those_of_a_step_method_made_inside():
    model = normal_mean()
    inside = built(model, epsilon=0.05)
    outside = AusterityMH(epsilon=0.05)
    assert_same_draws(sample(outside, model), sample(inside, model))


def test_it_can_be_set_up_to_read_what_it_is():
    model, settings = normal_mean(), AusterityMH(epsilon=0.05)
    step = settings.setup(model)
    assert step.explain().startswith("AusterityMH on y: ")
    with model:
        assert settings.setup().explain().splitlines()[0] == step.explain().splitlines()[0]
    for each in (settings, step):
        assert isinstance(each, AusterityMH) and not isinstance(each, GroupedMH | FireflyMH)
    with pytest.raises(SettingTypeError, match="there is no model to sample"):
        settings.setup()


def test_one_goes_with_several_models():
    step = AusterityMH()
    for model in (normal_mean(), normal_regression()):
        idata = sample(step, model)
        assert set(idata.posterior) == {variable.name for variable in model.free_RVs}
        assert "austerity" in idata.sample_stats.attrs["sampler"].lower()


def test_a_model_can_be_given():
    model = normal_mean()
    assert isinstance(AusterityMH(model=model), AusterityMH)


@pytest.mark.parametrize("step_method", [AusterityMH, FireflyMH, GroupedMH])
def test_says_what_it_is(step_method):
    step = step_method(steps_per_draw=2)
    assert repr(step) == f"{step_method.__name__}(steps_per_draw=2)"
    assert repr(pickle.loads(pickle.dumps(step))) == repr(copy.deepcopy(step)) == repr(step)
    with pytest.raises(AttributeError, match="has no 'explain' before it is made for a model"):
        step.explain()


def test_settings_are_checked_at_once_as_far_as_they_can_be():
    with pytest.raises(SettingError, match="epsilon"):
        AusterityMH(epsilon=0.05, max_error=0.01)
    late = AusterityMH(vars=["nobody"])
    with pytest.raises(SettingError, match="nobody"):
        sample(late, normal_mean())
