"""Quantities computed after sampling, on many rows: log-likelihoods, replications, LOO."""

from pymc_austerity.pointwise.quantities import (
    compute_log_likelihood,
    loo_subsample,
    sample_posterior_predictive,
)

__all__ = ["compute_log_likelihood", "loo_subsample", "sample_posterior_predictive"]
