"""Where a chain is, in the order in which PyMC tells it."""

import inspect

import pytest

from pymc_austerity import AusterityGibbs, AusterityMH
from pymc_austerity.step_methods.base import Phase


@pytest.mark.parametrize("tuning", [True, False])
def test_a_step_begins_the_chain_and_leaves_tuning_alone(tuning):
    begun = Phase(is_start=True, is_tuning=tuning).begun()
    assert begun == (False, tuning)
    assert begun.begun() == begun


@pytest.mark.parametrize(
    ("step_method", "epsilon"), [(AusterityMH, "auto"), (AusterityGibbs, 0.05)]
)
def test_signatures_show_the_arguments(step_method, epsilon):
    parameters = inspect.signature(step_method).parameters
    assert {"vars", "epsilon", "likelihood", "audit", "model"} <= set(parameters)
    assert not [name for name in parameters if name.startswith("_") or name in ("args", "kwargs")]
    assert parameters["epsilon"].default == epsilon
    assert parameters["epsilon"].kind is inspect.Parameter.KEYWORD_ONLY
