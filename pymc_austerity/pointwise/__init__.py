"""Quantities computed after sampling, on many rows: log-likelihoods, replications, LOO."""

from pymc_austerity.pointwise.log_likelihood import compute_log_likelihood
from pymc_austerity.pointwise.loo import loo_subsample
from pymc_austerity.pointwise.predictive import sample_posterior_predictive

__all__ = ["compute_log_likelihood", "loo_subsample", "sample_posterior_predictive"]
