"""Compiled loops over rows, written from their formulas; importing this registers the rules."""

from pymc_austerity.model.kernel import rules_rearranging
