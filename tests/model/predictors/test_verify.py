"""The numerical guard of the predictors."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_austerity.errors import NotRowwiseError
from pymc_austerity.model import verify_predictors
from tests.model.predictors.brute_force import Structured
from tests.zoo.all_shapes import SHAPES


@pytest.mark.parametrize("name", ["logistic", "slopes_by_group", "student_t"])
def test_what_was_found_passes(name, rng):
    found = Structured(SHAPES[name].build(53), rng)
    verify_predictors(found.structure, found.split, found.start, rng=rng)


def test_a_wrong_matrix_is_an_error_that_names_the_predictor(rng):
    found = Structured(SHAPES["logistic"].build(53), rng)
    (predictor,) = found.structure.predictors
    (term,) = predictor.terms
    wrong = replace(predictor, terms=(replace(term, entries=np.roll(term.entries, 1)),))
    structure = replace(found.structure, predictors=(wrong,))
    with pytest.raises(NotRowwiseError, match=r"'data @ beta'.*please report"):
        verify_predictors(structure, found.split, found.start, rng=rng)
