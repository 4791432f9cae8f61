"""What every step records, and what is constant over the run."""

from typing import Any

import numpy as np

__all__ = ["STATISTICS", "StatisticsTypes"]

STATISTICS: dict[str, tuple[type, list]] = {
    "accepted": (np.float64, []),
    "n_rows_used": (np.int64, []),
    "data_fraction": (np.float64, []),
    "n_looks": (np.int64, []),
    "decision_error": (np.float64, []),
    "standardized_mean": (np.float64, []),
    "used_all_rows": (np.bool_, []),
    "audited": (np.bool_, []),
    "audit_agrees": (np.bool_, []),
    "scaling": (np.float64, []),
}
"""Name, type and shape of the statistics of a step; their meaning is in `AusterityMH`."""


class StatisticsTypes(dict):
    """Types of the statistics, with the constants of the run travelling along.

    PyMC hands this dictionary unchanged from the step method to the trace. That is how the
    constants reach the attributes of ``sample_stats`` without PyMC knowing of them.

    Attributes
    ----------
    constants : dict
        Names and values (numbers or strings) of what is constant over the run.
    """

    def __init__(self, types: dict[str, type], constants: dict[str, Any]) -> None:
        super().__init__(types)
        self.constants = constants

    def __reduce__(self) -> tuple:
        return type(self), (dict(self), self.constants)
