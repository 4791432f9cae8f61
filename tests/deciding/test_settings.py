"""What settings mean together, and which of them contradict each other."""

import math

import pytest

from pymc_austerity import BarkerTest, HoeffdingTest, SettingError, StudentTTest
from pymc_austerity.deciding.settings import Settings


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        (Settings(), 2),
        (Settings(control_variates=1), 1),
        (Settings(control_variates=None), 0),
        (Settings(test=HoeffdingTest(1.0)), 0),  # the bound is for differences, not residuals
        (Settings(test=HoeffdingTest(1.0), control_variates=2), 2),
    ],
)
def test_order_of_the_control_variates(settings, order):
    assert settings.order == order


@pytest.mark.parametrize(
    ("sampling", "by_influence"),
    [("auto", True), ("strata", True), ("windows", False), ("fresh", False)],
)
def test_rows_are_sampled_by_influence_where_that_is_asked_for(sampling, by_influence):
    assert Settings(sampling=sampling).by_influence is by_influence


@pytest.mark.parametrize(
    "settings", [{"control_variates": None}, {"test": HoeffdingTest(1.0), "control_variates": 2}]
)
def test_strata_need_control_variates_and_no_bound(settings):
    with pytest.raises(SettingError, match="sampling='strata' is not possible"):
        Settings(sampling="strata", **settings)


@pytest.mark.parametrize(
    ("settings", "tail", "final"),
    [
        (Settings(epsilon=0.02), 0.02, 0.02),
        (Settings(max_error=0.01), 0.01, math.nan),
        (Settings(test=StudentTTest(0.1)), 0.1, 0.1),
        (Settings(test=BarkerTest()), 0.05, math.nan),
        (Settings(epsilon=lambda draw: 0.3 if draw < 1_000 else 0.04), 0.04, math.nan),
    ],
)
def test_one_number_for_how_strict_the_test_is(settings, tail, final):
    assert settings.tail == tail
    assert settings.final_epsilon == pytest.approx(final, nan_ok=True)


def test_the_usual_test_tightens_while_tuning():
    settings = Settings(epsilon=0.05)
    assert settings.tightens
    assert settings.schedule(0) > settings.schedule(10_000) >= 0.05


@pytest.mark.parametrize(
    "settings",
    [
        Settings(epsilon=0.0),
        Settings(max_error=0.01),
        Settings(test=StudentTTest(0.05, alpha=0.3)),
        Settings(epsilon=lambda draw: 0.1),
    ],
)
def test_no_other_does(settings):
    assert not settings.tightens


def test_exact_decisions_are_those_of_epsilon_zero():
    assert Settings(epsilon=0.0).is_exact
    assert not Settings(epsilon=0.01).is_exact
    assert not Settings(max_error=0.01).is_exact
