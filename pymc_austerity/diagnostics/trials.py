"""Decisions of a run, for the design of a test."""

from typing import Any

import numpy as np

from pymc_austerity.design import TrialRun
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.errors import SettingError

__all__ = ["trial_run"]

_MOSTLY = 0.9
"""Share of exact decisions above which the other decisions do not matter."""


def trial_run(idata: Any, *, step_method: int | None = None) -> TrialRun:
    r"""Distances of a run's decisions from the threshold, to design the test of the next run.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of ``AusterityMH(epsilon=0)``, with one step per draw on uniform samples, or a netCDF
        file of one.
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default all together.

    Returns
    -------
    TrialRun
        Input of `pymc_austerity.design.average_design` with ``measure="decision"``.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or no decision needed any rows.

    Notes
    -----
    The statistic ``standardized_mean`` is :math:`\mu_{std}` itself if a decision read all rows,
    as with ``epsilon=0``. Tests stop where its estimate is far from the threshold, so designs from
    runs that stopped early would be wrong more often than promised: runs in which more than a tenth
    of the decisions stopped early are rejected.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.design import average_design
    >>> from pymc_austerity.diagnostics import trial_run
    >>> dims, rng = ("chain", "draw"), np.random.default_rng(1)
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, np.full((2, 500), 10_000)),
    ...         "standardized_mean": (dims, rng.normal(0.0, 3.0, size=(2, 500))),
    ...         "used_all_rows": (dims, np.ones((2, 500), dtype=bool)),
    ...         "n_looks": (dims, np.ones((2, 500), dtype=int)),
    ...     },
    ...     attrs={"n_rows": 10_000},
    ... )
    >>> design = average_design(trial_run(run), max_error=0.01, measure="decision")
    >>> design.expected_error <= 0.01
    True
    """
    names = ["standardized_mean", "n_rows", "used_all_rows", "n_looks"]
    statistics = statistics_of(idata, names, step_method=step_method)
    if (statistics["steps_per_draw"] > 1).any():
        raise SettingError(
            "The run took several steps per draw and recorded the mean of their distances: make "
            "the trial run with steps_per_draw=1."
        )
    if "stratum_sizes" in statistics.attrs:
        raise SettingError(
            "The run sampled rows by influence, where the unit of distances changes from decision "
            "to decision: run the trial with sampling='windows', or use AusterityMH(max_error=...)."
        )
    exact = float((statistics["used_all_rows"] | (statistics["n_looks"] == 0)).mean())
    if exact < _MOSTLY:
        raise SettingError(
            f"Only {exact:.0%} of the run's decisions read all rows, and distances are "
            "overestimated where a test stopped early: make the trial run with epsilon=0."
        )
    values = statistics["standardized_mean"].values
    distances = values[np.isfinite(values)]
    if not distances.size:
        raise SettingError("No decision of the run needed any rows: there is nothing to design.")
    n_rows = int(statistics["n_rows"].max())
    return TrialRun.from_distances(distances, 1.0, n_rows)  # standardized: in units of the spread
