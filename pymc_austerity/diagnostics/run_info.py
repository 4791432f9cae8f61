"""The kind of a run, which determines the wording of texts about it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from pymc_austerity.diagnostics.groups import OF_PYMC

__all__ = ["RunInfo"]


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
