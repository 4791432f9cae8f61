"""The numerical guard of faster ways to evaluate rows."""

import numpy as np
import pytest

from pymc_austerity.model import differences_agree, kernel_of, predictor_derivatives, verify
from tests.model.predictors.brute_force import of_shape


def agrees(differences, found):
    verified = verify(found.split, found.start, rng=found.rng)
    return differences_agree(differences, found.at, verified, found.rng)


@pytest.mark.few("logistic", "slopes_by_group")
@pytest.mark.parametrize("name", ["logistic", "slopes_by_group", "student_t"])
def test_what_is_right_passes(name, rng):
    found = of_shape(name, rng)
    assert agrees(predictor_derivatives(found.structure, found.model).differences, found)
    assert agrees(kernel_of(found.structure, 2).differences, found)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda differences: differences * (1.0 + 1e-5),
        lambda differences: np.roll(differences, 1),
        lambda differences: np.where(np.arange(differences.size) == 7, np.nan, differences),
    ],
)
def test_what_is_wrong_is_noticed(wrong, rng):
    found = of_shape("logistic", rng)
    kernel = kernel_of(found.structure, 0)
    assert not agrees(lambda *arguments: wrong(kernel(*arguments)), found)
