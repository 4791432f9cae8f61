"""Set-up ends where much work would begin, once its time is over."""

import time

import numba
import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model.compiling import compiled
from pymc_austerity.rows import ArrayRows, sum_over_rows
from pymc_austerity.time_limit import (
    SetupTooLongError,
    counted,
    reviewed,
    share_of_rest,
    uncounted,
    within,
)


def add_up():
    return sum_over_rows(lambda block: block[0].sum(), ArrayRows([np.ones(10)]))


def compile_something():
    with pm.Model() as model:
        x = pm.Normal("x")
    return compiled(model, [model.rvs_to_values[x]], model.logp(), None)(np.zeros(()))


@pytest.mark.parametrize("work", [add_up, compile_something])
def test_ends_work_once_time_is_over(work):
    work()
    with pytest.raises(SetupTooLongError, match="longer than it can save"), within(0.0):
        work()
    work()


def test_what_is_done_once_on_a_machine_does_not_count():
    with within(0.2):
        with uncounted():
            started = time.process_time()
            while time.process_time() - started < 0.3:
                pass
        add_up()


@pytest.mark.parametrize(
    ("module", "counts"), [("pymc_austerity.rows", False), ("pymc_austerity_of_others", True)]
)
def test_compiling_what_serves_all_models_does_not_count(module, counts):
    def largest(values):
        return np.sort(values)[-1]

    largest.__module__ = module
    began, began_counting = time.process_time(), counted()
    numba.njit(largest)(np.ones(3))
    share = (counted() - began_counting) / (time.process_time() - began)
    assert (share > 0.99) == counts
    assert (share < 0.2) != counts


def test_a_limit_in_another_one_ends_first():
    with within(1_000.0):
        with pytest.raises(SetupTooLongError), share_of_rest(0.0):
            add_up()
        add_up()
    with pytest.raises(SetupTooLongError), within(0.0), within(1_000.0):
        add_up()
    with share_of_rest(0.5):
        add_up()


def test_more_time_or_less_is_given_once():
    answers = iter([1_000.0, 0.0])
    with reviewed(0.0, lambda: next(answers)):
        add_up()
        add_up()
    with pytest.raises(SetupTooLongError), reviewed(0.0, lambda: next(answers)):
        add_up()
    with reviewed(1_000.0, lambda: next(answers)):  # there is no other answer
        add_up()
