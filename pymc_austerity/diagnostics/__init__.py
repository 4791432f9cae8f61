"""What a run cost and how exact it was, from its sample statistics."""

from pymc_austerity.diagnostics.decisions import audit, block_usage, data_usage
from pymc_austerity.diagnostics.report import report
from pymc_austerity.diagnostics.run_info import statistics_of

__all__ = ["audit", "block_usage", "data_usage", "report", "statistics_of"]
