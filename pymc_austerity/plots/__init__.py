"""Plots of the diagnostics."""

from pymc_austerity.plots.pictures import (
    plot_audit,
    plot_block_usage,
    plot_data_usage,
    plot_decision_errors,
)

__all__ = ["plot_audit", "plot_block_usage", "plot_data_usage", "plot_decision_errors"]
