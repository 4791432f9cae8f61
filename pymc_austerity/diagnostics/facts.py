"""The numbers that a report speaks about."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.audits import audit_table, has_max_error
from pymc_austerity.diagnostics.errors_of_decisions import decision_errors
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.usage import data_usage

__all__ = ["Facts", "facts_of"]


@dataclass(frozen=True)
class Facts:
    """What is known of a run.

    Parameters
    ----------
    statistics : xarray.Dataset
        Statistics and constants.
    usage, errors, audit : pandas.DataFrame
        As `data_usage`, `decision_errors` and `audit` return them.
    promise : str
        Whose the error is that was promised: "promised", by the user, or "allowed by epsilon".
    """

    statistics: xr.Dataset
    usage: pd.DataFrame
    errors: pd.DataFrame
    audit: pd.DataFrame
    promise: str

    def constants(self, name: str) -> list[Any]:
        """Values of a constant of the run, one for each step method; none if it is not known."""
        values = self.statistics.coords.get(name)
        return [] if values is None else values.values.tolist()

    def constant(self, name: str) -> Any:
        """The value that all step methods share, else None."""
        values = self.constants(name)
        return values[0] if values and all(value == values[0] for value in values) else None


def facts_of(
    idata: Any, promised: float | None, probability: float, step_method: int | None
) -> Facts:
    """Read all that is known of a run."""
    statistics = statistics_of(idata, step_method=step_method)
    return Facts(
        statistics,
        data_usage(statistics),
        decision_errors(statistics),
        audit_table(statistics, promised, probability, None),
        "promised" if promised is not None or has_max_error(statistics) else "allowed by epsilon",
    )
