"""Checks of scalars and choices, and their sentences."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from pymc_austerity.arguments import (
    checked_audit,
    checked_batch_size,
    checked_choice,
    checked_count,
    checked_fraction,
    checked_max_error,
    checked_positive,
    checked_rate,
    checked_schedule,
    checked_tail,
    choice_among,
    refuse_positional,
    unless_auto,
)
from pymc_austerity.errors import SettingError, SettingTypeError

NUMBERS = {
    "fraction": (
        lambda x: checked_fraction("share", x, 0.8, "a share"),
        [0, 0.3, 0.8],
        [-0.1, 0.9],
    ),
    "tail": (lambda x: checked_tail("epsilon", x), [0, 0.05, 0.5], [-1e-9, 0.51]),
    "positive": (lambda x: checked_positive("scale", x, "a size"), [1e-300, 7], [0, -1, math.inf]),
    "rate": (lambda x: checked_rate("target", x), [0.01, 0.99], [0, 1]),
    "max_error": (checked_max_error, [0.001, 0.4], [0, 0.5]),
    "audit": (checked_audit, [0, 1, 0.05], [-0.5, 1.5]),
    "schedule": (lambda x: schedule_of(x), [0, 0.05], [0.6]),
}
"""For each check: numbers that pass, and numbers that do not."""


def schedule_of(value):
    return checked_schedule("epsilon", value, checked_tail, of="draw", what="a tail probability")


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_range_pass_whatever_their_type(name):
    check, good, _ = NUMBERS[name]
    for value in good:
        for kind in (float, np.float64, Fraction):
            assert check(kind(value)) == pytest.approx(float(value), rel=1e-6)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_out_of_range_are_refused_in_a_sentence(name):
    check, _, bad = NUMBERS[name]
    for value in [*bad, math.nan]:
        with pytest.raises(SettingError, match=r"^\w+=\S+ is not .*: give .*\.$"):
            check(value)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [True, "0.1", [0.1], Decimal("0.1"), 1j])
def test_what_is_no_number_is_refused(name, value):
    with pytest.raises(SettingTypeError, match=r"is not .*: give "):
        NUMBERS[name][0](value)


def test_values_that_stand_for_a_default():
    assert checked_max_error(None) is None
    assert checked_audit("auto") == "auto"
    assert unless_auto("batch_size", "auto") is None
    assert unless_auto("batch_size", 500) == 500
    with pytest.raises(SettingTypeError, match="batch_size=None is not a choice"):
        unless_auto("batch_size", None)


class TestSchedules:
    def test_a_function_is_returned_as_it_is(self):
        def schedule(draw):
            return 0.1 / (1 + draw)

        assert schedule_of(schedule) is schedule

    def test_a_function_that_leaves_the_range_is_refused_with_the_draw(self):
        with pytest.raises(SettingError, match=r"epsilon\(1000\)=0.6 is not"):
            schedule_of(lambda draw: 0.6 if draw == 1_000 else 0.1)

    def test_a_function_that_raises_is_refused_with_its_error(self):
        with pytest.raises(SettingError, match=r"epsilon\(0\) raised ZeroDivisionError"):
            schedule_of(lambda draw: 1 / draw)

    def test_a_class_is_no_function(self):
        with pytest.raises(SettingTypeError):
            schedule_of(float)


class TestCounts:
    def test_integers_of_any_type_pass(self):
        assert checked_count("n", np.int8(3)) == 3 and type(checked_count("n", np.int8(3))) is int

    @pytest.mark.parametrize("value", [2.0, True, "3", None])
    def test_what_is_no_integer_is_refused(self, value):
        with pytest.raises(SettingTypeError, match="give an integer of at least 1"):
            checked_count("n", value)

    def test_too_few_are_refused(self):
        with pytest.raises(SettingError, match="n=2 is not a count: give an integer of at least 3"):
            checked_count("n", 2, at_least=3)
        with pytest.raises(SettingError, match="batch_size=1 is not a number of rows"):
            checked_batch_size(1)


class TestChoices:
    def test_types_count(self):
        checked_choice("blocked", True, (True, False))
        with pytest.raises(SettingError, match="blocked=1 is not a choice: use True or False"):
            checked_choice("blocked", 1, (True, False))

    def test_what_may_have_been_meant(self):
        assert choice_among("bta", ["beta", "sigma"]) == "'beta' may be meant"
        assert choice_among("zzz", ["beta", "sigma"]) == "choose from 'beta', 'sigma'"
        assert choice_among(3, map(str, range(20))).endswith("'9', ...")

    def test_all_arguments_but_one_have_names(self):
        refuse_positional(dict, [])
        with pytest.raises(SettingTypeError, match="dict takes one argument without a name"):
            refuse_positional(dict, [0.05])
