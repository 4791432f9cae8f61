import numpy as np
import pytest

from pymc_austerity.design import (
    Boundary,
    Looks,
    constant_looks,
    doubling_looks,
    effective_shares,
    stratified_looks,
)
from pymc_austerity.sequential import StratifiedSurvey
from pymc_austerity.strata import Strata
from tests.streams import Stratum, survey_of


def shares_of(survey):
    counts = []
    while not counts or counts[-1] < survey.n_rows:
        counts.append(survey.look().n_seen)
    return np.array(counts) / survey.n_rows


@pytest.mark.parametrize(("batch_size", "n_rows"), [(100, 1_000), (300, 1_000), (1_000, 1_000)])
def test_constant_looks_are_those_of_a_uniform_survey(batch_size, n_rows, rng):
    survey = survey_of(rng.normal(size=n_rows), batch_size)
    np.testing.assert_array_equal(constant_looks(batch_size, n_rows).shares, shares_of(survey))


@pytest.mark.parametrize(("batch_size", "n_rows"), [(125, 1_000), (300, 1_000), (2, 1_000)])
def test_doubling_looks_are_those_of_a_survey_with_one_stratum(batch_size, n_rows, rng):
    stream = Stratum(rng.normal(size=n_rows))
    survey = StratifiedSurvey(stream, Strata.single(n_rows, batch_size))
    np.testing.assert_array_equal(doubling_looks(batch_size, n_rows).shares, shares_of(survey))


def test_information_is_the_precision_of_the_estimate(rng):
    survey = survey_of(rng.normal(size=1_000), 300)
    information = constant_looks(300, 1_000).information
    for expected in information:
        estimate = survey.look()
        # the sheet's variance has n - 1 where Brownian motion has n: a row in a thousand
        assert estimate.spread**2 / estimate.variance == pytest.approx(expected, rel=2e-2)


def test_effective_shares_of_a_uniform_sample_are_its_shares():
    shares = np.array([0.1, 0.4, 1.0])
    variances = 7.0**2 * (1 - shares) / shares
    np.testing.assert_allclose(effective_shares(variances, 7.0), shares, rtol=1e-14)


def test_pocock_and_o_brien_fleming():
    looks = Looks([0.25, 0.64, 1.0])
    np.testing.assert_allclose(Boundary(0.05).at(looks), 1.6448536269514722)
    np.testing.assert_allclose(
        Boundary(0.05, 0.0).at(looks), 1.6448536269514722 / np.sqrt([0.25, 0.64])
    )
    assert np.all(np.isinf(Boundary(0.0).at(looks)))


def test_rows_without_spread_are_not_waited_for():
    """The last look is the one after which only rows of the second stratum are left."""
    strata = Strata(np.array([40, 2_000]), np.array([20, 20]))
    looks = stratified_looks(strata, [1.0, 0.0])
    assert (np.diff(looks.effective_shares) > 0.0).all()
    assert looks.shares[-1] == looks.effective_shares[-1] == 1.0
    assert looks.shares[-2] < 0.1
