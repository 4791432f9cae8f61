"""Settings that few need: together, one by one, and where they have no meaning."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, fields
from types import SimpleNamespace
from typing import get_type_hints

import numpy as np
import pytest

from pymc_austerity import (
    AusterityMH,
    FireflyMH,
    GroupedMH,
    Options,
    SettingError,
    SettingTypeError,
)
from pymc_austerity.step_methods.request import OptionFields, Request

STEP_METHODS = [AusterityMH, FireflyMH, GroupedMH]


def test_editors_know_the_fields_as_keywords():
    assert get_type_hints(OptionFields) == {
        name: kind for name, kind in get_type_hints(Options).items() if name in names_of_options()
    }


def names_of_options():
    return {field.name for field in fields(Options)}


def test_a_record_is_frozen_and_takes_names_only():
    with pytest.raises(TypeError):
        Options(1)
    with pytest.raises(FrozenInstanceError):
        Options().axis = 1


@pytest.mark.parametrize("step_method", STEP_METHODS)
def test_together_and_one_by_one(step_method):
    named = step_method(steps_per_draw=2, axis=1)
    together = step_method(options=Options(steps_per_draw=2, axis=1))
    both = step_method(steps_per_draw=2, options=Options(axis=1))
    assert repr(named) == repr(together) == repr(both)
    assert repr(named) == f"{step_method.__name__}(axis=1, steps_per_draw=2)"


@pytest.mark.parametrize("step_method", STEP_METHODS)
def test_a_setting_that_is_given_twice(step_method):
    with pytest.raises(SettingError, match="tune is given by name and in options=: leave one"):
        step_method(tune=False, options=Options(tune=False))


@pytest.mark.parametrize("step_method", STEP_METHODS)
def test_options_of_another_type(step_method):
    with pytest.raises(SettingTypeError, match=r"type dict is not .* give Options\(\.\.\.\), or"):
        step_method(options={"tune": False})


@pytest.mark.parametrize("step_method", [FireflyMH, GroupedMH])
@pytest.mark.parametrize(
    "given", [{"batch_size": 50}, {"sampling": "fresh"}, {"control_variates": 2}]
)
def test_options_without_a_meaning(step_method, given):
    for settings in (given, {"options": Options(**given)}):
        with pytest.raises(SettingTypeError, match=f"no setting '{next(iter(given))}': choose"):
            step_method(**settings)


def test_none_stands_for_doing_without():
    AusterityMH(control_variates=None, max_error=None, data=None, resume=None)
    for name in ("epsilon", "proposal", "likelihood", "batch_size", "anchor"):
        with pytest.raises(SettingTypeError, match=f"{name}=None is not a choice.* give 'auto'"):
            AusterityMH(**{name: None})
        assert repr(AusterityMH(**{name: "auto"})) == "AusterityMH()"


@pytest.mark.parametrize("step_method", STEP_METHODS)
def test_signatures_are_short_and_have_the_defaults_of_the_request(step_method):
    shown = inspect.signature(step_method).parameters
    *named, more = shown.values()
    assert len(named) <= 12 and more.kind is more.VAR_KEYWORD
    usual = {field.name: field.default for field in fields(Request)}
    assert {each.name for each in named} <= set(usual)
    assert step_method.takes <= names_of_options()
    if step_method is AusterityMH:
        assert {each.name for each in named} == set(usual)
        assert all(each.default == usual[each.name] for each in named if each.name != "options")


def test_only_what_differs_from_a_default_is_given():
    table = np.zeros(3)
    assert Options().given == {} and Options(axis=np.int64(0)).given == {}
    assert Options(initial_point={"x": table}).given == {"initial_point": {"x": table}}
    run = SimpleNamespace(posterior=table)
    written = pickle.loads(pickle.dumps(Request(test="".join(["au", "to"]), resume=run)))
    assert set(written.given) == {"resume"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"axis": -1}, "axis=-1 is not the number of an axis"),
        ({"batch_size": 1}, "at least 2"),
        ({"steps_per_draw": 0}, "at least 1"),
        ({"blocked": "no"}, "True or False"),
        ({"compile_kwargs": {"moda": 1}}, "'mode' may be meant"),
        ({"control_variates": None, "anchor": {}}, "anchor has no effect"),
    ],
)
def test_values_are_checked_by_the_record(given, words):
    with pytest.raises(SettingError, match=words):
        Options(**given)
