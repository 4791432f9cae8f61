"""What is wrong with a run, in one sentence, as soon as sampling ends."""

from collections.abc import Iterator
from typing import Any

import xarray as xr

from pymc_austerity.diagnostics.audits import audit_table, contradicts
from pymc_austerity.diagnostics.chains import on_chains, on_no_move, on_one_chain
from pymc_austerity.diagnostics.convergence import MIN_DRAWS, convergence_of, frozen_entry
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.diagnostics.usage import data_usage

__all__ = ["what_is_wrong"]

_CERTAIN = 0.999
"""Coverage of the interval that contradicts a promise: a false alarm in one run of 2,000."""


def what_is_wrong(idata: Any, *, look_at_draws: bool = True) -> str:
    """Say in one sentence why a run should not be trusted, and what to do.

    Reasons are audited decisions that contradict the promise, an r_hat above 1.01 (1.05 in
    runs of fewer than 1,000 draws), fewer than 400 effective draws among at least 1,000, chains
    whose rows read or acceptance rates differ by more than a factor of 3, a single chain of fewer
    than 10 effective draws, and no accepted proposal at all.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run.
    look_at_draws : bool
        Whether to compute r_hat and effective draws.

    Returns
    -------
    str
        Empty if nothing is wrong, and for runs of fewer than 100 draws in each chain.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics.end_of_run import what_is_wrong
    >>> values = {
    ...     "n_rows_used": 500,
    ...     "data_fraction": 0.05,
    ...     "n_looks": 1,
    ...     "used_all_rows": False,
    ...     "accepted": 0.3,
    ...     "n_audited": 1,
    ...     "n_wrong": 0.2,
    ... }
    >>> run = xr.Dataset(
    ...     {name: (("chain", "draw"), np.full((2, 100), value)) for name, value in values.items()},
    ...     attrs={"epsilon": 0.05},
    ... )
    >>> print(what_is_wrong(run))
    40 of 200 audited decisions were wrong, more than the 5.00% allowed by epsilon (which bounds
    the error of one look): choose a smaller epsilon, or a larger batch_size.
    """
    if "n_looks" not in getattr(idata, "sample_stats", idata):
        return ""  # PyMC's own samplers, which PyMC checks
    statistics = statistics_of(idata)
    if statistics.sizes["draw"] < MIN_DRAWS:
        return ""
    found = [*_on_promise(statistics), *_on_chains(idata, statistics, look_at_draws)]
    sentence = "; ".join(f"{wrong}: {remedy}" for wrong, remedy in found)
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""


def _on_promise(statistics: xr.Dataset) -> Iterator[tuple[str, str]]:
    info = RunInfo(statistics)
    if not {"n_audited", "n_wrong"} <= set(statistics) or info.nothing_to_audit:
        return
    row = audit_table(statistics, None, _CERTAIN, None).loc["all"]
    if not contradicts(row):
        return
    source = info.strictness
    if source == "epsilon" and not info.is_bounded:
        source += " (which bounds the error of one look)"
    wrong = (
        f"{row['n_wrong']:,.0f} of {row['n_audited']:,.0f} audited {info.decision}s were wrong, "
        f"more than the {row['promised']:.2%} allowed by {source}"
    )
    yield wrong, info.fewer_errors


def _on_chains(
    idata: Any, statistics: xr.Dataset, look_at_draws: bool
) -> Iterator[tuple[str, str]]:
    info, usage = RunInfo(statistics), data_usage(statistics)
    unmoved = on_no_move(info, usage)
    if unmoved is not None:
        yield unmoved
        return
    if not statistics.sizes["chain"] > 1:
        frozen = frozen_entry(idata) if look_at_draws else None
        if frozen is not None:
            yield on_one_chain(info, frozen)
        return
    convergence = convergence_of(idata) if look_at_draws else None
    found = on_chains(info, usage, convergence)
    if found is not None:
        yield found
