"""Runs as data: the statistics of a step method, and the settings that they were made with."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from pymc_austerity.arguments import checked_count
from pymc_austerity.errors import SettingError, SettingTypeError

OF_PYMC = {"AllRowsNUTS": "NUTS", "NUTS": "NUTS", "PyMCSteps": "step methods of PyMC"}
"""Names of samplers that read all rows and decide nothing from some of them, in words."""

_GROUP = "sample_stats"
_DIMENSIONS = ("chain", "draw", "step_method")
_CONSTANTS = (
    "sampler",
    "n_rows",
    "n_factors",
    "epsilon",
    "max_error",
    "audit",
    "steps_per_draw",
    "batch_size",
    "control_variates",
    "no_control_variates",
    "test",
    "acceptance_rule",
    "assumption",
    "sampling",
    "normality",
    "proposal",
    "proposal_rows",
    "setup_seconds",
    "resumed",
)


def statistics_of(
    idata: Any, names: Sequence[str] = (), *, step_method: int | None = None
) -> xr.Dataset:
    """Statistics of the decisions of a run, in the same shape for every kind of run.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        The result of ``pm.sample``, its group ``sample_stats``, or a result of this function.
    names : sequence of str
        Required statistics and constants.
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default all of them.

    Returns
    -------
    xarray.Dataset
        The statistics, of shape (chain, draw, step_method), and the constants of the run (such as
        ``epsilon``) as coordinates of shape (step_method,). A statistic that step methods of other
        kinds record as well is NaN, because its values cannot be distinguished.

    Raises
    ------
    SettingTypeError
        `idata` is something else.
    SettingError
        It holds no statistics of AusterityMH, or not those in `names`, or has no such step method.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import statistics_of
    >>> run = xr.Dataset(
    ...     {"n_rows_used": (("chain", "draw"), [[100, 300], [100, 100]])}, attrs={"epsilon": 0.05}
    ... )
    >>> statistics = statistics_of(run)
    >>> statistics["n_rows_used"].shape, float(statistics["epsilon"][0])
    ((2, 2, 1), 0.05)
    """
    group = _without_numbers(_group(idata))
    sampler = OF_PYMC.get(str(group.attrs.get("sampler")))
    if sampler:
        group = _without_decisions(group, idata)
    if "n_rows_used" not in group or not {"chain", "draw"} <= set(group["n_rows_used"].dims):
        raise SettingError(
            "The run holds no statistics of AusterityMH: pass what pm.sample(step=AusterityMH()) "
            "returned."
        )
    statistics = _aligned(group)
    missing = [name for name in names if name not in statistics.variables]
    if missing and sampler:
        raise SettingError(
            f"The run has no {', '.join(map(repr, missing))}, because it is one of {sampler}, "
            "evaluated on all rows: use report, data_usage or plot_data_usage."
        )
    if missing:
        raise SettingError(
            f"The run lacks {', '.join(map(repr, missing))}, which AusterityMH records in "
            f"{_GROUP}: pass the run as pm.sample returned it."
        )
    return statistics if step_method is None else _one_of(statistics, step_method)


def _group(idata: Any) -> xr.Dataset:
    if isinstance(idata, xr.Dataset):
        return idata
    group = getattr(idata, _GROUP, idata)
    if isinstance(group, xr.DataTree):
        return group.to_dataset()
    if isinstance(group, xr.Dataset):
        return group
    if hasattr(idata, "posterior") or hasattr(idata, "prior"):
        raise SettingError(
            f"The run has no group {_GROUP}, which some step methods of PyMC leave out: az.summary "
            "shows how well such a run mixed; pass others as pm.sample returned them."
        )
    raise SettingTypeError(
        f"idata must be an InferenceData, a DataTree or a Dataset, not {type(idata).__name__}."
    )


def _without_numbers(group: xr.Dataset) -> xr.Dataset:
    """The statistics of one or several AusterityMH, which a ``ZarrTrace`` of PyMC numbers."""
    by_number: dict[str, dict[str, xr.DataArray]] = defaultdict(dict)
    for name, values in group.data_vars.items():
        if found := re.fullmatch(r"sampler_(\d+)__(.+)", str(name)):
            by_number[found[1]][found[2]] = values
    ours = [xr.Dataset(each) for each in by_number.values() if "n_rows_used" in each]
    if not ours:
        return group
    return xr.concat(ours, _DIMENSIONS[-1]).transpose(*_DIMENSIONS, ...).compute()


def _aligned(group: xr.Dataset) -> xr.Dataset:
    """Statistics with an axis of step methods, and with constants as coordinates of this axis."""
    n_step_methods = int(np.prod(group["n_rows_used"].shape[2:]))
    statistics = xr.Dataset(
        {name: _with_axis(group[name], n_step_methods) for name in _ours(group)}, attrs=group.attrs
    )
    constants = {"steps_per_draw": 1, "proposal_rows": 0} | dict(group.attrs)
    found = {
        name: (_DIMENSIONS[-1], _for_each(constants[name], n_step_methods))
        for name in _CONSTANTS
        if name in constants and name not in statistics.coords
    }
    return statistics.assign_coords(found)


def _without_decisions(group: xr.Dataset, idata: Any) -> xr.Dataset:
    """Statistics of a sampler of PyMC, with those of decisions that read all rows.

    Some samplers record none, so that their numbers are those of the draws.
    """
    draws = group if {"chain", "draw"} <= set(group.sizes) else getattr(idata, "posterior", group)
    if not {"chain", "draw"} <= set(draws.sizes):
        return group
    n_rows = group.attrs.get("n_rows", np.nan)
    usual = {
        "n_rows_used": n_rows,
        "n_looks": 1,
        "used_all_rows": True,
        "accepted": np.nan,
        "decision_error": 0.0,
        "n_audited": 0,
        "n_wrong": 0,
    }
    shape = [draws.sizes[name] for name in ("chain", "draw")]
    new = {k: (("chain", "draw"), np.full(shape, v)) for k, v in usual.items() if k not in group}
    group = group.assign(new).assign_attrs({"epsilon": 0.0} | group.attrs)
    if "data_fraction" in group:
        return group
    return group.assign(data_fraction=group["n_rows_used"] / n_rows)


def _ours(group: xr.Dataset) -> list[str]:
    return [str(name) for name in group.data_vars if {"chain", "draw"} <= set(group[name].dims)]


def _with_axis(values: xr.DataArray, n_step_methods: int) -> xr.DataArray:
    extra = [name for name in values.dims if name not in _DIMENSIONS[:2]]
    values = values.drop_vars(extra, errors="ignore")
    if len(extra) == 1:
        values = values.rename({extra[0]: _DIMENSIONS[-1]})
    else:
        values = values.expand_dims({_DIMENSIONS[-1]: 1})
    values = values.transpose(*_DIMENSIONS, ...)
    if values.shape[2:] == (n_step_methods,):
        return values
    unknown = values.isel(dict.fromkeys(values.dims[2:], 0), drop=True)
    unknown = xr.full_like(unknown, np.nan, dtype=float)
    return unknown.expand_dims({_DIMENSIONS[-1]: n_step_methods}, axis=-1)


def _for_each(value: Any, n_step_methods: int) -> list[Any]:
    values = np.atleast_1d(np.asarray(value)).tolist()
    return values if len(values) == n_step_methods else values[:1] * n_step_methods


def _one_of(statistics: xr.Dataset, step_method: int) -> xr.Dataset:
    n_step_methods = statistics.sizes[_DIMENSIONS[-1]]
    what = "the number of an AusterityMH of this run"
    step_method = checked_count("step_method", step_method, at_least=0, what=what)
    if step_method >= n_step_methods:
        raise SettingError(
            f"step_method must be from 0 to {n_step_methods - 1}, the AusterityMH of this run, "
            f"not {step_method}."
        )
    return statistics.isel({_DIMENSIONS[-1]: [step_method]})


@dataclass(frozen=True)
class RunInfo:
    """Which step method made decisions about what, and by which test.

    Parameters
    ----------
    statistics : xarray.Dataset
        Result of `statistics_of`.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import statistics_of
    >>> from pymc_austerity.diagnostics.run_info import RunInfo
    >>> used = {"n_rows_used": (("chain", "draw"), [[100, 300]])}
    >>> info = RunInfo(statistics_of(xr.Dataset(used, attrs={"acceptance_rule": "barker"})))
    >>> info.sampler, info.rows, info.has_verdicts
    ('AusterityMH', 'rows', False)
    """

    statistics: xr.Dataset

    def constants(self, name: str) -> list[Any]:
        """Values of a constant of the run, one for each step method; empty if unknown."""
        values = self.statistics.coords.get(name)
        return [] if values is None else values.values.tolist()

    def constant(self, name: str) -> Any:
        """The value that all step methods share, else None."""
        values = self.constants(name)
        return values[0] if values and all(value == values[0] for value in values) else None

    # ------------------------------------------------------------------ words

    @property
    def sampler(self) -> str:
        """Name of the step method."""
        return self.constant("sampler") or "AusterityMH"

    @property
    def is_gibbs(self) -> bool:
        """Whether entries were updated, without proposals."""
        return self.sampler == "AusterityGibbs"

    @property
    def of_pymc(self) -> str:
        """The sampler in words if it is one of PyMC, which reads all rows; empty otherwise."""
        return OF_PYMC.get(self.sampler, "")

    @property
    def has_sweeps(self) -> bool:
        """Whether a draw has a decision on each of several blocks, and many decisions on levels."""
        return self.sampler == "GroupedMH"

    @property
    def rows(self) -> str:
        """What decisions read."""
        return "factors" if self.is_gibbs else "rows"

    @property
    def decision(self) -> str:
        """Word for what is decided and counted."""
        return "update" if self.is_gibbs else "draw" if self.of_pymc else "decision"

    @property
    def a_decision(self) -> str:
        """Word for what is decided, with its article."""
        return "an update" if self.is_gibbs else f"a {self.decision}"

    @property
    def counted(self) -> str:
        """Word for what the number of decisions counts; for `GroupedMH`, whole sweeps."""
        return "sweep" if self.has_sweeps else self.decision

    @property
    def a_counted(self) -> str:
        """The word of `counted`, with its article."""
        return "a sweep" if self.has_sweeps else self.a_decision

    @property
    def unit(self) -> str:
        """What a record describes: a single decision, or the mean of those of a draw."""
        return f"{self.decision}s" if set(self.constants("steps_per_draw")) == {1} else "draws"

    @property
    def strictness(self) -> str:
        """The argument that sets how often decisions may be wrong."""
        return "max_error" if self.is_designed else "epsilon"

    # ------------------------------------------------------------------ the test

    @property
    def acceptance_rules(self) -> set[str]:
        """Acceptance rules of the run: "metropolis", "barker", "poisson", "none"."""
        return set(self.constants("acceptance_rule"))

    @property
    def has_verdicts(self) -> bool:
        """Whether some decisions are right or wrong."""
        return not self.acceptance_rules or "metropolis" in self.acceptance_rules

    @property
    def is_bounded(self) -> bool:
        """Whether an inequality bounds the error of whole decisions."""
        return set(self.constants("assumption")) == {"bounded differences"}

    @property
    def is_designed(self) -> bool:
        """Whether the test was designed for an error that the user specified."""
        return bool(np.isfinite(self.max_error))

    @property
    def max_error(self) -> float:
        """Largest share of wrong decisions that the user requested; NaN if none."""
        return max([value for value in self.constants("max_error") if value == value] or [np.nan])

    @property
    def is_poisson(self) -> bool:
        """Whether the run made exact decisions from a Poisson sample of the rows."""
        return self.acceptance_rules == {"poisson"}

    @property
    def is_exact(self) -> bool:
        """Whether no decision can be wrong, according to what the run recorded."""
        if self.is_poisson:
            return True
        if not {"used_all_rows", "n_looks"} <= set(self.statistics):
            return False
        exact = self.statistics["used_all_rows"] | (self.statistics["n_looks"] == 0)
        return self.has_verdicts and bool(exact.all())

    @property
    def is_normal(self) -> bool:
        """Whether means of first looks passed the check of normality before the run."""
        return "failed" not in self.constants("normality")

    @property
    def is_stratified(self) -> bool:
        """Whether rows were sampled in strata, which have their own first looks."""
        return "StratifiedWindows" in self.constants("sampling")

    @property
    def nothing_to_audit(self) -> str:
        """Why there is nothing to audit, as a sentence; empty if there is something to audit."""
        if self.acceptance_rules == {"none"}:
            return "There was no test that could be wrong: there is nothing to audit."
        if self.is_exact:
            return f"Every {self.decision} is exact: there is nothing to audit."
        if not self.has_verdicts:
            return "Barker's decisions are random, not right or wrong: there is nothing to audit."
        return ""

    @property
    def fewer_errors(self) -> str:
        """The remedy for too many wrong decisions."""
        if self.is_bounded:
            return "the bound of the differences is too small: choose a larger one"
        if not self.is_normal:
            return f"means of first looks were not normal before the run, so {self.more_normal}"
        if self.is_designed:
            return (
                "choose a smaller max_error, or tune longer to have better decisions to design on"
            )
        return "choose a smaller epsilon, or a larger batch_size"

    @property
    def more_normal(self) -> str:
        """The remedy for means of first looks that are not normal."""
        remedy = "choose a larger batch_size"
        if self.is_stratified:
            return remedy
        return (
            f"{remedy}, sample by influence (control_variates='auto', sampling='auto'), or take a "
            "test that needs no normal means (test=EmpiricalBernsteinTest(...))"
        )
