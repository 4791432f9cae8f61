"""The step methods: everything else, assembled behind PyMC's contract."""

from pymc_austerity.step_methods.austerity_mh import AusterityMH

__all__ = ["AusterityMH"]
