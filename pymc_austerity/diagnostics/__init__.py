"""What a run cost and how exact it was, from its sample statistics."""

from pymc_austerity.diagnostics.audits import audit
from pymc_austerity.diagnostics.blocks import block_usage
from pymc_austerity.diagnostics.errors_of_decisions import decision_errors
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.report import report
from pymc_austerity.diagnostics.trials import trial_run
from pymc_austerity.diagnostics.usage import data_usage

__all__ = [
    "audit",
    "block_usage",
    "data_usage",
    "decision_errors",
    "report",
    "statistics_of",
    "trial_run",
]
