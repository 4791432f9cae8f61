"""The numerical guard of faster ways to evaluate rows."""

import numpy as np
import pytest

from pymc_austerity.model import (
    ModelAt,
    differences_agree,
    find_predictors,
    kernel_of,
    predictor_derivatives,
    split_log_density,
    verify,
)
from tests.zoo.all_shapes import SHAPES


class Verified:
    """A split model whose cut was verified."""

    def __init__(self, name, rng):
        self.model = SHAPES[name].build(53)
        self.point, self.rng = self.model.initial_point(), rng
        self.split = split_log_density(self.model, point=self.point)
        self.verified = verify(self.split, self.point, rng=rng)
        self.variables = list(self.model.value_vars)
        self.at = ModelAt(self.split, self.variables, {}, self.point)
        self.structure = find_predictors(self.at)

    def agrees(self, differences):
        return differences_agree(differences, self.at, self.verified, self.rng)


@pytest.mark.few("logistic", "slopes_by_group")
@pytest.mark.parametrize("name", ["logistic", "slopes_by_group", "student_t"])
def test_what_is_right_passes(name, rng):
    verified = Verified(name, rng)
    assert verified.agrees(predictor_derivatives(verified.structure, verified.model).differences)
    assert verified.agrees(kernel_of(verified.structure, 2).differences)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda differences: differences * (1.0 + 1e-5),
        lambda differences: np.roll(differences, 1),
        lambda differences: np.where(np.arange(differences.size) == 7, np.nan, differences),
    ],
)
def test_what_is_wrong_is_noticed(wrong, rng):
    verified = Verified("logistic", rng)
    kernel = kernel_of(verified.structure, 0)
    assert not verified.agrees(lambda *arguments: wrong(kernel(*arguments)))
