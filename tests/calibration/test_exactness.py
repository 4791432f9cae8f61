"""Every kernel leaves its posterior invariant when its decisions are exact.

The probability that a correct kernel fails any of these tests is below 0.1 %: 1e-5 for each test.
The quick tier has half of the kernels with little effort, the exhaustive one all of them with more.
"""

import functools

import numpy as np
import pytest

from pymc_austerity import AusterityMH
from tests.calibration.exactness import passes, rank_p_values, two_sample_p_values
from tests.calibration.kernels import SUBJECTS, kernel_of, rates, stretched

QUICK, MORE = 300, 3_000


@functools.cache
def built(name):
    subject = SUBJECTS[name]
    problem = subject.problem()
    with problem.model:
        return kernel_of(problem, subject.step()), problem.target


@pytest.mark.few("random walk-300", "a user's function-300")
@pytest.mark.parametrize("effort", [QUICK, MORE])
@pytest.mark.parametrize("name", SUBJECTS)
def test_draws_of_the_posterior_stay_draws_of_it(name, effort):
    kernel, target = built(name)
    rng = np.random.default_rng(1)
    assert passes(lambda n: two_sample_p_values(kernel, target, n, rng), effort)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in SUBJECTS if SUBJECTS[name].reversible])
def test_ranks_of_the_start_are_uniform(name):
    kernel, target = built(name)
    rng = np.random.default_rng(3)
    assert passes(lambda n: rank_p_values(kernel, target, n, rng), 2_000)


@pytest.mark.few("two_sample_p_values")
@pytest.mark.parametrize("p_values", [rank_p_values, two_sample_p_values])
def test_a_log_ratio_the_wrong_way_round_is_found(p_values):
    problem = rates()

    def reversed_ratio(point, rng):
        new, log_ratio = stretched(point, rng)
        return new, -log_ratio

    with problem.model:
        kernel = kernel_of(problem, AusterityMH(epsilon=0.0, proposal=reversed_ratio))
    rng = np.random.default_rng(4)
    assert not passes(lambda n: p_values(kernel, problem.target, n, rng), 800)
