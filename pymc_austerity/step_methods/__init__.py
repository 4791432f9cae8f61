"""The step methods: all other parts, assembled behind PyMC's contract."""

from pymc_austerity._pymc import annotate_conversion, before_sampling
from pymc_austerity.diagnostics.chains import what_is_wrong
from pymc_austerity.step_methods.austerity_mh import AusterityMH, FireflyMH
from pymc_austerity.step_methods.configured import check_step_methods, with_model
from pymc_austerity.step_methods.grouped_mh import GroupedMH
from pymc_austerity.step_methods.interrupts import restore_interrupts
from pymc_austerity.step_methods.request import Options
from pymc_austerity.step_methods.summary import merged_constants

annotate_conversion(merged_constants, at_end=restore_interrupts, what_is_wrong=what_is_wrong)
before_sampling(check_step_methods, with_model)
