"""Constants of a run on their way to sample_stats."""

import math
import pickle

from pymc_austerity.step_methods.summary import StatisticsTypes, merged_constants


def types(**constants):
    return StatisticsTypes({"accepted": float}, constants)


def test_constants_survive_a_pickle():
    copy = pickle.loads(pickle.dumps(types(epsilon=0.05)))
    assert type(copy) is StatisticsTypes
    assert copy == {"accepted": float} and copy.constants == {"epsilon": 0.05}


def test_equal_constants_are_one_and_others_a_list():
    merged = merged_constants([types(a=1, b=2, c=math.nan), types(a=1, b=3, c=math.nan)])
    assert (merged["a"], merged["b"]) == (1, [2, 3])
    assert math.isnan(merged["c"])


def test_what_only_one_has_is_left_out():
    assert merged_constants([types(a=1, b=2), types(a=1)]) == {"a": 1}


def test_step_methods_of_others_are_passed_over():
    assert merged_constants([{"tree_depth": int}, types(a=1)]) == {"a": 1}
    assert merged_constants([{"tree_depth": int}]) == {}
