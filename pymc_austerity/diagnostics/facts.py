"""The numbers of a report."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.audits import audit_table
from pymc_austerity.diagnostics.chains import on_chains
from pymc_austerity.diagnostics.convergence import Convergence, convergence_of, why_not_checked
from pymc_austerity.diagnostics.errors_of_decisions import decision_errors
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.diagnostics.usage import data_usage

__all__ = ["Facts", "facts_of"]


@dataclass(frozen=True)
class Facts:
    """The known facts about a run.

    Parameters
    ----------
    statistics : xarray.Dataset
        Statistics and constants.
    info : RunInfo
        Settings of the run.
    usage, errors, audit : pandas.DataFrame
        Results of `data_usage`, `decision_errors` and `audit`.
    promise : str
        Source of the promised error: "promised", by the user, or "allowed by epsilon".
    convergence : Convergence or None
        Whether chains agree, if there are enough draws.
    unchecked : str
        Why there is no `convergence`, as a clause; empty if there is.
    """

    statistics: xr.Dataset
    info: RunInfo
    usage: pd.DataFrame
    errors: pd.DataFrame
    audit: pd.DataFrame
    promise: str
    convergence: Convergence | None
    unchecked: str

    @property
    def disagreement(self) -> tuple[str, str] | None:
        """What is wrong with the chains, and what to do; None if nothing is wrong."""
        return on_chains(self.info, self.usage, self.convergence)


def facts_of(idata: Any, promised: float | None, prob: float, step_method: int | None) -> Facts:
    """Read the known facts about a run."""
    statistics = statistics_of(idata, step_method=step_method)
    info, convergence = RunInfo(statistics), convergence_of(idata)
    return Facts(
        statistics,
        info,
        data_usage(statistics),
        decision_errors(statistics),
        audit_table(statistics, promised, prob, None),
        "promised" if promised is not None or info.is_designed else "allowed by epsilon",
        convergence,
        "" if convergence else why_not_checked(idata),
    )
