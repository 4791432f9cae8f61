"""What a run cost and how exact it was, from its sample statistics."""

from pymc_austerity.diagnostics.audits import audit, decision_errors, trial_run
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.report import report
from pymc_austerity.diagnostics.usage import block_usage, data_usage

__all__ = [
    "audit",
    "block_usage",
    "data_usage",
    "decision_errors",
    "report",
    "statistics_of",
    "trial_run",
]
