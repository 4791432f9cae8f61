"""Step methods as samplers of PyMC's coming ``pm.sample(sampler=...)``."""

import subprocess
import sys
import textwrap

import pytest

from pymc_austerity import AusterityMH
from tests.running import QUIET, assert_same_draws, built, sample
from tests.step_methods.models import normal_mean

RUN = {"draws": 40, "tune": 40, "chains": 2, "cores": 1, "random_seed": 3}


@pytest.mark.parametrize("settings", [{"epsilon": 0.05}, {}], ids=["few rows", "NUTS"])
def test_draws_are_those_of_the_step_argument(settings):
    model = normal_mean()
    expected = sample(AusterityMH(**settings), model, **RUN)
    assert_same_draws(
        AusterityMH(**settings).sample_from_init(model=model, **RUN, **QUIET), expected
    )
    step = built(model, **settings)
    with model:
        assert_same_draws(step.sample_from_init(**RUN, **QUIET), expected)


def test_it_counts_as_a_sampler_where_pymc_has_them():
    # a stand-in for the module that PyMC plans, with its name and its abstract base class
    program = """
        import abc, sys, types
        module = types.ModuleType("pymc.sampling.samplers")
        module.Sampler = abc.ABCMeta("Sampler", (), {})
        sys.modules["pymc.sampling.samplers"] = module
        import pymc as pm
        from pymc_austerity import AusterityMH, FireflyMH, GroupedMH
        with pm.Model():
            pm.Normal("y", pm.Normal("a"), 1.0, observed=[0.1, 0.2])
            held = AusterityMH()
        for each in (held, AusterityMH(), FireflyMH(), GroupedMH()):
            assert isinstance(each, module.Sampler), type(each)
        assert not isinstance(pm.Metropolis, module.Sampler)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert run.returncode == 0, run.stderr
