"""What is wrong with the chains of a run, in one sentence, as soon as sampling ends."""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.convergence import (
    FROZEN,
    MIN_DRAWS,
    Convergence,
    convergence_of,
    slowest_entry,
)
from pymc_austerity.diagnostics.decisions import (
    above_limit,
    audit_table,
    data_usage,
    exact_interval,
)
from pymc_austerity.diagnostics.run_info import RunInfo, statistics_of

_FACTOR = 3.0
"""Ratio between two chains, of rows read or of shares accepted, that needs an explanation."""

_FEW_ROWS = 10.0
"""Fewer rows are as good as none."""

_CERTAIN = 0.999
"""Coverage of the interval that lies above a limit: a false alarm in one run of 2,000."""

_SEVERAL_PLACES = (
    "each chain mixes, but around a different point, as with several modes; constrain what the "
    "data do not identify, such as a sign or an order, or compare the log-densities of the chains"
)


def on_chains(
    info: RunInfo, usage: pd.DataFrame, convergence: Convergence | None
) -> tuple[str, str] | None:
    """What is wrong with the chains, and what to do about it; None if nothing is wrong.

    Parameters
    ----------
    info : RunInfo
        Kind of the run.
    usage : pandas.DataFrame
        Result of `data_usage`.
    convergence : Convergence or None
        Result of `convergence_of`.

    Examples
    --------
    >>> import pandas as pd
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import statistics_of
    >>> from pymc_austerity.diagnostics.chains import on_chains
    >>> from pymc_austerity.diagnostics.convergence import Convergence
    >>> used = {"n_rows_used": (("chain", "draw"), [[100, 300]])}
    >>> info = RunInfo(statistics_of(xr.Dataset(used)))
    >>> usage = pd.DataFrame(
    ...     {"n_decisions": 500, "rows_median": 9.0, "rows_mean": 9.0, "acceptance": 0.3},
    ...     index=[0, 1, "all"],
    ... )
    >>> wrong, remedy = on_chains(info, usage, Convergence(2, 1000, "tau", 1.5, 9.0, "tau", 3.0))
    >>> wrong
    "the 2 chains do not agree ('tau': r_hat 1.50, 9 effective draws of 1,000)"
    """
    differences = list(_differences(info, usage.drop(index="all")))
    if convergence is not None and convergence.chains_disagree:
        draws = f"{convergence.ess:,.0f} effective draws of {convergence.n_draws:,}"
        if convergence.ess_name != convergence.name:
            draws = f"'{convergence.ess_name}': {draws}"
        digits = 3 if convergence.r_hat < 1.1 else 2  # the limit is 1.01
        r_hat = f"'{convergence.name}': r_hat {convergence.r_hat:.{digits}f}"
        evidence = "; ".join([f"{r_hat}, {draws}", *differences])
        remedy = _SEVERAL_PLACES if convergence.has_several_places else _slow(info, convergence)
        verb = "do" if convergence.is_apart else "may"
        return f"the {convergence.n_chains} chains {verb} not agree ({evidence})", remedy
    if differences:
        return f"the chains may be in different places ({'; '.join(differences)})", (
            "look at their traces, tune longer, and start from other places (initvals)"
        )
    if convergence is not None and convergence.is_too_short:
        error = 1.0 / math.sqrt(convergence.ess)
        return (
            f"{convergence.n_draws:,} draws are only {convergence.ess:,.0f} effective draws of "
            f"'{convergence.ess_name}', whose mean is uncertain by {error:.2f} posterior sd"
        ), _slow(info, convergence)
    return None


def _differences(info: RunInfo, chains: pd.DataFrame) -> Iterator[str]:
    rows = chains[["rows_median", "rows_mean"]].clip(lower=_FEW_ROWS)
    # chains with max_error have tests of their own, of different batch sizes
    if not info.is_designed and (rows.max() > _FACTOR * rows.min()).all():
        most, least = chains["rows_median"].idxmax(), chains["rows_median"].idxmin()
        median = chains["rows_median"]
        yield (
            f"chain {most} reads {median[most]:,.0f} {info.rows} per {info.decision} in the "
            f"median, chain {least} reads {median[least]:,.0f}"
        )
    acceptance = chains["acceptance"]
    if acceptance.isna().any():  # step methods of other kinds record it as well
        return
    most, least = acceptance.idxmax(), acceptance.idxmin()
    low, _ = _interval(chains.loc[most])
    _, high = _interval(chains.loc[least])
    if low > _FACTOR * high:
        what = "changes" if info.is_gibbs else "accepts"
        yield f"chain {most} {what} {acceptance[most]:.0%}, chain {least} {acceptance[least]:.0%}"


def _interval(chain: pd.Series) -> tuple[float, float]:
    n_decisions = int(chain["n_decisions"])
    return exact_interval(round(chain["acceptance"] * n_decisions), n_decisions, _CERTAIN)


def _slow(info: RunInfo, convergence: Convergence) -> str:
    """What to do about slow mixing."""
    return (convergence.more_draws if _has_learnt(info) else "") or _poor_mixing(info)


def _has_learnt(info: RunInfo) -> bool:
    return info.statistics.attrs.get("tuning_steps") != 0 or any(info.constants("resumed"))


def _poor_mixing(info: RunInfo) -> str:
    if info.of_pymc:
        return "write the model with less dependence between variables, or take many more draws"
    if info.is_gibbs:
        return "take more draws, or start from other places (initvals)"
    if not _has_learnt(info):
        return "with tune=0 the proposals learn nothing: tune for 1,000 steps"
    if set(info.constants("proposal")) == {"RandomWalkProposal"}:
        why = info.constant("no_control_variates")
        reason = f" (without control variates, because {why})" if why else ""
        return (
            f"a random walk{reason} explores this posterior slowly; use NUTS, write the model with "
            "less dependence between variables, or tune longer and take many more draws"
        )
    return (
        "the proposals do not fit this posterior; use NUTS, write the model with less dependence "
        "between variables, or tune longer and take more draws"
    )


def what_is_wrong(idata: Any, *, look_at_draws: bool = True) -> str:
    """Say in one sentence why a run should not be trusted, and what to do.

    Reasons are more wrong decisions than the limit, an r_hat above 1.01 (1.05 in
    runs of fewer than 1,000 draws), fewer than 400 effective draws among at least 1,000, chains
    whose rows read or acceptance rates differ by more than a factor of 3, a single chain of fewer
    than 10 effective draws, or fewer than 100 among at least 1,000, and no accepted proposal.

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
    >>> from pymc_austerity.diagnostics.chains import what_is_wrong
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
    40 of 200 audited decisions were wrong, more than the 5.00% allowed by epsilon, which bounds
    the error of one look: choose a smaller epsilon, or a larger batch_size.
    """
    if "n_looks" not in getattr(idata, "sample_stats", idata):
        return ""  # PyMC's own samplers, which PyMC checks
    statistics = statistics_of(idata)
    if statistics.sizes["draw"] < MIN_DRAWS:
        return ""
    found = [*_on_audits(statistics), *_on_chains(idata, statistics, look_at_draws)]
    sentence = "; ".join(f"{wrong}: {remedy}" for wrong, remedy in found)
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""


def _on_audits(statistics: xr.Dataset) -> Iterator[tuple[str, str]]:
    info = RunInfo(statistics)
    if not {"n_audited", "n_wrong"} <= set(statistics) or info.nothing_to_audit:
        return
    row = audit_table(statistics, None, _CERTAIN, None).loc["all"]
    if broken := above_limit(row, info):
        yield broken


def _on_chains(
    idata: Any, statistics: xr.Dataset, look_at_draws: bool
) -> Iterator[tuple[str, str]]:
    info, usage = RunInfo(statistics), data_usage(statistics)
    if usage.loc["all", "acceptance"] == 0.0:
        yield (
            f"no {info.decision} changed anything, so all draws are where chains began",
            "look for values in the data that leave hardly any point possible, start elsewhere "
            "(initvals), or tune longer",
        )
        return
    if not statistics.sizes["chain"] > 1:
        if look_at_draws and (slowest := slowest_entry(idata)):
            name, ess = slowest
            draws = f"{ess:,.0f} effective draws of {statistics.sizes['draw']:,}"
            what = "hardly moved" if ess < FROZEN else "mixes slowly"
            yield f"the chain {what} ('{name}': {draws})", _poor_mixing(info)
        return
    convergence = convergence_of(idata) if look_at_draws else None
    if found := on_chains(info, usage, convergence):
        yield found
