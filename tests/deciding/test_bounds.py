import math

import numpy as np
import pytest

from pymc_austerity.deciding.settings import bound_between
from pymc_austerity.errors import SettingError, SettingTypeError

POINTS = np.ones(2), np.zeros(2)


def test_numbers_are_bounds_and_functions_are_called():
    assert bound_between(None, *POINTS) == math.inf
    assert bound_between(2.5, *POINTS) == 2.5
    assert bound_between(lambda new, old: np.abs(new - old).sum(), *POINTS) == 2.0
    assert bound_between(lambda new, old: np.asarray(3.0), *POINTS) == 3.0


def test_equal_points_and_points_far_away_have_usable_bounds():
    assert 0.0 < bound_between(lambda new, old: 0.0, *POINTS) < 1e-200
    assert 1e200 < bound_between(lambda new, old: np.asarray(math.inf), *POINTS) < math.inf


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda point: 1.0, SettingError),
        (lambda new, old: 1.0 / 0.0, SettingError),
        (lambda new, old: math.nan, SettingError),
        (lambda new, old: -1.0, SettingError),
        (lambda new, old: None, SettingTypeError),
        (lambda new, old: np.ones(2), SettingTypeError),
    ],
)
def test_functions_that_give_no_bound(function, error):
    with pytest.raises(error, match=r"largest_difference\(proposed, current\).*function"):
        bound_between(function, *POINTS)
