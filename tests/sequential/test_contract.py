"""What every sequential test has in common: one method, and a description."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

from pymc_austerity.errors import SettingTypeError
from pymc_austerity.sequential import (
    AcceptAll,
    BarkerTest,
    EmpiricalBernsteinTest,
    HoeffdingTest,
    StudentTTest,
    TestDescription,
    as_test,
    audited,
)
from tests.streams import survey_of


class FirstLookDecides:
    """A user's stopping rule."""

    def stops(self, evidence):
        return True

    def error(self, evidence):
        return 0.25


METROPOLIS = [
    StudentTTest(0.05),
    StudentTTest(0.05, alpha=0.25),
    HoeffdingTest(3.0),
    EmpiricalBernsteinTest(3.0),
    as_test(FirstLookDecides()),
]
EVERY = [*METROPOLIS, BarkerTest(), AcceptAll()]


def name(test):
    return test.description.name


@pytest.mark.parametrize("test", EVERY, ids=name)
def test_one_method_decides_and_draws_from_the_given_generator_only(test, rng):
    values = rng.normal(0.0, 0.02, size=1_000)
    log_ratio = -1.0 - values.sum()  # of the whole: -1
    decisions = [
        [test.decide(survey_of(values), log_ratio, generator) for _ in range(20)]
        for generator in (np.random.default_rng(1), np.random.default_rng(1))
    ]
    np.testing.assert_array_equal(*[[d[:4] for d in run] for run in decisions])
    outcomes = {decision.accept for decision in decisions[0]}
    assert outcomes == ({True} if name(test) == "None" else {True, False})


@pytest.mark.parametrize("test", EVERY, ids=name)
def test_descriptions_are_frozen_and_travel(test):
    description = test.description
    assert isinstance(description, TestDescription)
    assert description.summary
    with pytest.raises(dataclasses.FrozenInstanceError):
        description.name = "another"
    assert repr(pickle.loads(pickle.dumps(test)).description) == repr(description)
    assert description.needs_bound == (description.assumption == "bounded differences")
    assert as_test(test) is test


@pytest.mark.parametrize("test", METROPOLIS, ids=name)
def test_all_rows_give_metropolis_hastings_with_the_same_random_numbers(test, rng):
    values = rng.normal(0.0, 0.02, size=400)
    ours, plain = np.random.default_rng(3), np.random.default_rng(3)
    accepted = []
    for log_ratio in rng.normal(size=200):
        decision = test.decide(survey_of(values, batch_size=400), log_ratio, ours)
        assert decision.accept == (math.log(plain.random()) < values.sum() + log_ratio)
        assert decision.exact and decision.decision_error == 0.0
        accepted.append(decision.accept)
    assert 20 < sum(accepted) < 180


@pytest.mark.parametrize("test", METROPOLIS, ids=name)
def test_audits_record_what_all_rows_say_and_change_nothing(test, rng):
    values = rng.normal(0.0, 0.02, size=1_000)
    n_wrong = 0
    for k in range(100):
        values = rng.permutation(values)
        plain = test.decide(survey_of(values), 0.0, np.random.default_rng(k))
        survey = survey_of(values)
        checked = audited(test.decide(survey, 0.0, np.random.default_rng(k)), survey)
        assert checked._replace(exact_accept=None) == plain
        assert checked.exact_accept == (values.sum() > plain.log_threshold)
        n_wrong += checked.accept != checked.exact_accept
    if name(test) == "FirstLookDecides":
        assert n_wrong > 5


def test_a_rule_of_a_user_has_what_it_says():
    rule = FirstLookDecides()
    assert math.isnan(as_test(rule).description.epsilon)
    rule.epsilon, rule.growth = 0.1, 2.0
    description = as_test(rule).description
    assert (description.epsilon, description.growth) == (0.1, 2.0)
    assert description.summary == "FirstLookDecides with epsilon=0.1"


@pytest.mark.parametrize("value", [StudentTTest, "student", 0.05, object()])
def test_other_things_are_refused(value):
    with pytest.raises(SettingTypeError, match="test"):
        as_test(value)
