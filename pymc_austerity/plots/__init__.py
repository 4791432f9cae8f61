"""Plots of the diagnostics; they need matplotlib, an optional dependency."""

from pymc_austerity.plots.audit import plot_audit
from pymc_austerity.plots.block_usage import plot_block_usage
from pymc_austerity.plots.data_usage import plot_data_usage
from pymc_austerity.plots.decision_errors import plot_decision_errors
from pymc_austerity.plots.risk import plot_risk
from pymc_austerity.plots.t_statistic import plot_t_statistic

__all__ = [
    "plot_audit",
    "plot_block_usage",
    "plot_data_usage",
    "plot_decision_errors",
    "plot_risk",
    "plot_t_statistic",
]
