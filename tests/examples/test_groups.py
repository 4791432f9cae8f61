"""The tutorial on groups: its data and its model."""

import numpy as np
import pytest

from examples.groups import build_model, load_marriages
from pymc_austerity import GroupedMH


def test_couples_are_grouped_by_both_occupations():
    data, pairs, pair = load_marriages()
    sizes = np.bincount(pair, minlength=36)
    assert (len(data), len(pairs), sizes.min(), sizes.max()) == (6_366, 36, 2, 904)
    both = (data["occupation"] == 3) & (data["occupation_husb"] == 4)
    assert {pairs[k] for k in pair[both]} == {"white-collar / teacher, nurse"}


@pytest.mark.slow
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.exhaustive
def test_both_forms_of_the_model_are_moved_by_blocks(centered):
    with build_model(*load_marriages(), centered=centered):
        step = GroupedMH()
    assert "36 levels of" in step.explain()
    assert ("Moved as products" in step.explain()) is not centered
