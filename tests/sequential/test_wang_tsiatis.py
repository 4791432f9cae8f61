import math

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.design import Boundary, Looks, constant_looks, operating_characteristic
from pymc_austerity.errors import SettingError
from pymc_austerity.sequential import (
    Evidence,
    StudentTTest,
    UniformSurvey,
    WangTsiatisTest,
    exceeds,
)


class Stream:
    def __init__(self, values):
        self.values, self.n_read = values, 0

    def read(self, n_rows):
        self.n_read += n_rows
        yield self.values[self.n_read - n_rows : self.n_read]


def evidence(statistic, n_seen, n_rows=10_000):
    return Evidence(3.0 * statistic, 3.0, n_seen - 1, n_seen, n_rows, 1)


@pytest.mark.parametrize("epsilon", [0.0, 1e-20, 0.01, 0.05, 0.5])
def test_one_half_is_student_t_to_the_last_bit(epsilon, rng):
    pocock, student = WangTsiatisTest(epsilon, alpha=0.5), StudentTTest(epsilon)
    for n_seen in (2, 50, 5_000):
        quantile = -stats.t.ppf(epsilon, n_seen - 1) if epsilon else 1e300
        beside = quantile * (1.0 + 1e-15 * rng.integers(-8, 9, size=50))
        for statistic in [0.0, *beside, *rng.normal(0.0, 5.0, size=20)]:
            at = evidence(statistic, n_seen)
            assert pocock.stops(at) == student.stops(at)
            assert pocock.error(at) == student.error(at)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.7])
@pytest.mark.parametrize("n_seen", [100, 4_000, 9_999])
def test_stops_where_the_normal_boundary_of_the_design_lies(alpha, n_seen):
    share = n_seen / 10_000
    bound = float(Boundary(0.3, alpha).at(Looks([share, 1.0]))[0])
    quantile = stats.t.isf(stats.norm.sf(bound), n_seen - 1)
    rule = WangTsiatisTest(0.3, alpha)
    for sign in (-1, 1):
        assert rule.stops(evidence(sign * quantile * (1 + 1e-6), n_seen))
        assert not rule.stops(evidence(sign * quantile * (1 - 1e-6), n_seen))


def test_a_level_below_the_smallest_number_never_stops():
    assert not WangTsiatisTest(0.01, alpha=0.0).stops(evidence(1e6, 10))


@pytest.mark.parametrize("epsilon", [-0.01, 0.51, math.nan])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(SettingError, match="epsilon"):
        WangTsiatisTest(epsilon)


@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_errs_as_often_as_designed(alpha, rng):
    n_rows, mu_std, n_repeats = 1_000, 0.3, 2_000
    differences = rng.normal(size=n_rows)
    differences -= differences.mean()
    differences += mu_std * differences.std() / math.sqrt(n_rows - 1)
    rule, wrong, used = WangTsiatisTest(0.1, alpha), 0, []
    for _ in range(n_repeats):
        stream = Stream(rng.permutation(differences))
        survey = UniformSurvey(stream, n_rows=n_rows, batch_size=100)
        decision = exceeds(survey, 0.0, rule=rule)
        wrong += not decision.accept
        used.append(decision.n_rows_used / n_rows)
    promised = operating_characteristic(mu_std, constant_looks(100, n_rows), Boundary(0.1, alpha))
    error = float(promised.error)
    assert abs(wrong / n_repeats - error) < 3 * math.sqrt(error * (1 - error) / n_repeats)
    assert abs(np.mean(used) - promised.data_fraction) < 3 * np.std(used) / math.sqrt(n_repeats)
