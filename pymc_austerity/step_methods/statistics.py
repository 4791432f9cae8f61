"""What every step records."""

import numpy as np

__all__ = ["STATISTICS"]

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

