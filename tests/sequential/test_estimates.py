import numpy as np
import pytest

from pymc_austerity.sequential import UniformSurvey


def survey_of(*blocks):
    """A sample of all these values in one look, read in blocks."""

    class Stream:
        def read(self, n_rows):
            yield from blocks

    n = sum(map(len, blocks))
    survey = UniformSurvey(Stream(), n_rows=n, batch_size=n)
    survey.look()
    return survey


@pytest.mark.parametrize("sizes", [(7,), (1, 1, 1), (500, 3, 250), (2, 1_000)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_agrees_with_numpy(sizes, offset, rng):
    values = rng.normal(size=sum(sizes)) + offset
    survey = survey_of(*np.split(values, np.cumsum(sizes)[:-1]))
    assert survey.count == values.size
    assert survey.total == pytest.approx(values.sum(), rel=1e-14)
    # the centered squares keep ten digits although the mean is a million times the spread
    assert survey.deviations[0] == pytest.approx(values.std(ddof=1), rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_not_finite_shows(bad):
    survey = survey_of(np.array([1.0, 2.0]), np.array([3.0, bad]))
    assert survey.count == 4
    assert not np.isfinite(survey.total)


def test_rounding_is_not_spread(rng):
    wrong = np.array([0, 1, 0, 0, -1, 0, 0]) * 1e-17
    assert survey_of(*[0.1 + wrong] * 3).deviations == 0.0
    values = 1.0 + 1e-10 * rng.normal(size=100)
    assert survey_of(values).deviations[0] == pytest.approx(values.std(ddof=1), rel=1e-4)
