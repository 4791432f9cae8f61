"""Comparison of the chains of a run, in words."""

import math
from collections.abc import Iterator

import pandas as pd

from pymc_austerity.diagnostics.binomial import exact_interval
from pymc_austerity.diagnostics.convergence import Convergence
from pymc_austerity.diagnostics.run_info import RunInfo

__all__ = ["on_chains", "on_no_move", "on_one_chain"]

_FACTOR = 3.0
"""Ratio between two chains, of rows read or of shares accepted, that needs an explanation."""
_FEW_ROWS = 10.0
"""Fewer rows are as good as none."""
_CERTAIN = 0.999
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
        r_hat = f"'{convergence.name}': r_hat {convergence.r_hat:.2f}"
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


def on_one_chain(info: RunInfo, frozen: tuple[str, float]) -> tuple[str, str]:
    """What is wrong with the only chain, and what to do about it.

    Parameters
    ----------
    info : RunInfo
        Kind of the run.
    frozen : tuple of str and float
        Result of `frozen_entry`.
    """
    name, ess = frozen
    n_draws = info.statistics.sizes["draw"]
    return (
        f"the chain hardly moved ('{name}': {ess:,.0f} effective draws of {n_draws:,})",
        _poor_mixing(info),
    )


def on_no_move(info: RunInfo, usage: pd.DataFrame) -> tuple[str, str] | None:
    """What to do about a run in which nothing moved; None if anything moved.

    Parameters
    ----------
    info : RunInfo
        Kind of the run.
    usage : pandas.DataFrame
        Result of `data_usage`.
    """
    if usage.loc["all", "acceptance"] != 0.0:
        return None
    return f"no {info.decision} changed anything, so all draws are where chains began", (
        "look for values in the data that leave hardly any point possible, start elsewhere "
        "(initvals), or tune longer"
    )


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
    has_learnt = info.statistics.attrs.get("tuning_steps") != 0
    return (convergence.more_draws if has_learnt else "") or _poor_mixing(info)


def _poor_mixing(info: RunInfo) -> str:
    if info.of_pymc:
        return "write the model with less dependence between variables, or take many more draws"
    if info.is_gibbs:
        return "take more draws, or start from other places (initvals)"
    if info.statistics.attrs.get("tuning_steps") == 0:
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
