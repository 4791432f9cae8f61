"""Plots of the diagnostics; they need matplotlib, an optional dependency."""

from pymc_austerity.plots.errors import (
    plot_audit,
    plot_decision_errors,
)
from pymc_austerity.plots.usage import plot_block_usage, plot_data_usage

__all__ = [
    "plot_audit",
    "plot_block_usage",
    "plot_data_usage",
    "plot_decision_errors",
]
