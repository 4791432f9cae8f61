"""Step methods as samplers of PyMC's coming ``pm.sample(sampler=...)``."""

import inspect
import subprocess
import sys
import textwrap

import pymc as pm
import pytest

from pymc_austerity import AusterityMH
from pymc_austerity._pymc import Sampler
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


def test_its_arguments_are_those_of_every_sampler():
    # as in PyMC's pull request 8358, until PyMC has its base class
    planned = (
        "model draws tune chains cores blas_cores initvals random_seed progressbar quiet "
        "discard_tuned_samples keep_warning_stat var_names idata_kwargs compute_convergence_checks"
    )
    if Sampler is not None:
        planned = " ".join(list(inspect.signature(Sampler.sample_from_init).parameters)[1:])
    own = inspect.signature(AusterityMH().sample_from_init).parameters
    usual = inspect.signature(pm.sample).parameters
    assert " ".join(own) == planned
    assert {each.kind for each in own.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert {name for name in own if own[name].default != usual[name].default} <= {"tune"}


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
        # and where the module comes without it
        del module.Sampler
        for name in [name for name in sys.modules if name.startswith("pymc_austerity")]:
            del sys.modules[name]
        import pymc_austerity
        assert pymc_austerity._pymc.Sampler is None
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=200)
