"""The settings of a step method, checked when they are given."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import (
    checked_audit,
    checked_max_error,
    checked_number,
    checked_schedule,
    checked_tail,
)
from pymc_austerity.errors import SettingError
from pymc_austerity.sequential import (
    AcceptAll,
    BoundOfDifferences,
    Schedule,
    SequentialTest,
    StoppingRule,
    StudentTTest,
    TestDescription,
    Tightening,
    as_test,
)

USUAL_EPSILON = 0.05
"""Tail probability at one look; with control variates, few decisions have further looks."""

USUAL_MAX_ERROR = 0.01
"""Share of wrong decisions without control variates, when decisions have many looks."""

EXACT = TestDescription("exact", "no decision can be wrong", acceptance="poisson")
"""Decisions from a Poisson sample of the rows, which leave the posterior exactly invariant."""

FIREFLY = TestDescription("firefly", "no decision can be wrong", acceptance="poisson")
"""Decisions given which rows are bright, which also leave the posterior exactly invariant."""

_SETTLED = 1_000
"""Draw whose value represents a schedule if a single number is needed."""


@dataclass(frozen=True)
class Settings:
    """How decisions are made, as the user wants it; see `AusterityMH` for the meaning of each.

    None stands for an `epsilon` or a `batch_size` that is chosen. `Options` has checked
    `batch_size`, `sampling` and `control_variates`. `only_with_surrogate` says to give up where all
    rows would have to be read.

    Raises
    ------
    SettingError, SettingTypeError
        A value cannot be used, or two of them contradict each other.
    """

    epsilon: float | Schedule | None = None
    max_error: float | None = None
    test: SequentialTest | StoppingRule | Literal["auto", "exact", "firefly"] | None = "auto"
    batch_size: int | None = None
    sampling: Literal["auto", "strata", "windows", "fresh"] = "auto"
    control_variates: Literal["auto", 1, 2] | None = "auto"
    audit: float | Literal["auto"] = "auto"
    only_with_surrogate: bool = False

    def __post_init__(self) -> None:
        checked = {
            "epsilon": None if self.epsilon is None else _checked_epsilon(self.epsilon),
            "max_error": checked_max_error(self.max_error),
            "test": _checked_test(self.test),
            "audit": checked_audit(self.audit),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._refuse_different_strictness()
        if self.decides_exactly:
            self._refuse_beside_exact_decisions()
        can_be_wrong = self.description.has_verdicts or self.decides_exactly
        if self.is_audit_given and not can_be_wrong:
            raise SettingError(
                f"audit={self.audit} is not possible with test={self.test!r}, whose decisions are "
                "not right or wrong: leave audit out."
            )
        self._refuse_strata_without_control_variates()

    def _refuse_different_strictness(self) -> None:
        """Reject settings of which one has no effect beside the other."""
        given = {"epsilon": self.epsilon is not None, "max_error": self.max_error is not None}
        given["test"] = not (isinstance(self.test, str) and self.test == "auto")
        names = [name for name, is_given in given.items() if is_given]
        if len(names) > 1:
            raise SettingError(
                f"{' and '.join(names)} each say how strict the test is: give one of them."
            )

    def _refuse_beside_exact_decisions(self) -> None:
        """Reject settings that exact decisions do not use or cannot do without."""
        useless = {
            "batch_size": (self.batch_size is not None, "take as many rows as they need"),
            "sampling": (self.sampling != "auto", "draw rows by their bounds"),
        }
        for name, (is_given, why) in useless.items():
            if is_given:
                raise SettingError(
                    f"{name}={getattr(self, name)!r} has no effect with test='exact', whose "
                    f"decisions {why}: leave one of them out."
                )
        if self.control_variates not in ("auto", 2):
            raise SettingError(
                f"control_variates={self.control_variates!r} is not possible with test='exact', "
                "which bounds what an expansion of second order leaves: leave one of them out."
            )

    def _refuse_strata_without_control_variates(self) -> None:
        if self.sampling == "strata" and (self.order == 0 or self.description.needs_bound):
            reason = (
                f"test={self.test!r} needs uniform samples"
                if self.description.needs_bound
                else (
                    "with control_variates=None no row is known to have more influence than another"
                )
            )
            raise SettingError(
                f"sampling='strata' is not possible, because {reason}: leave one of them out."
            )

    @property
    def _epsilon(self) -> float | Schedule:
        return USUAL_EPSILON if self.epsilon is None else self.epsilon

    @property
    def is_audit_given(self) -> bool:
        """Whether the user asked to check decisions on all rows."""
        return self.audit not in ("auto", 0.0)

    @property
    def is_strictness_given(self) -> bool:
        """Whether the user specified how strict the test is."""
        named = self.epsilon is not None or self.max_error is not None
        return named or not (isinstance(self.test, str) and self.test == "auto")

    def without_control_variates(self, *, by_single_rows: bool = False) -> "Settings":
        """The settings for differences that are not reduced by an expansion.

        A test with few wrong decisions would then read four fifths of the rows. So all of them are
        read, unless the user sets the strictness of a test, or requests some of the rows by
        `batch_size` or `sampling`. If single rows can exclude a point, no test on some of the
        rows is valid.

        Parameters
        ----------
        by_single_rows : bool
            Whether the support of the rows depends on parameters.

        Examples
        --------
        >>> Settings().without_control_variates().is_exact
        True
        >>> Settings(batch_size=500).without_control_variates().max_error
        0.01
        >>> Settings(epsilon=0.05).without_control_variates().epsilon
        0.05
        """
        without = replace(self, control_variates=None)
        if self.is_strictness_given:
            return without
        if by_single_rows or (self.batch_size is None and self.sampling == "auto"):
            return replace(without, epsilon=0.0)
        return replace(without, max_error=USUAL_MAX_ERROR)

    def try_bound(self, point: NDArray) -> None:
        """Raise the error of an invalid bound before a chain begins."""
        bound_between(self.description.largest_difference, point, point)

    @cached_property
    def final_test(self) -> SequentialTest:
        """The test after tuning, or before a better one is designed."""
        if self.test is None:
            return AcceptAll()
        if self.test == "auto":
            return StudentTTest(self.tail, relative=self.is_relative)
        return cast(SequentialTest, self.test)

    @property
    def is_relative(self) -> bool:
        """Whether tests keep the relative error of acceptance probabilities small."""
        return self.control_variates is not None

    @property
    def description(self) -> TestDescription:
        """Known properties of the test."""
        if self.decides_exactly:
            return FIREFLY if self.test == "firefly" else EXACT
        return self.final_test.description

    @property
    def decides_exactly(self) -> bool:
        """Whether decisions are exact ones from some of the rows."""
        return isinstance(self.test, str) and self.test in ("exact", "firefly")

    @property
    def who_decides_exactly(self) -> str:
        """The user's setting that requested exact decisions."""
        return "FireflyMH" if self.test == "firefly" else "test='exact'"

    @property
    def may_decide_exactly(self) -> bool:
        """Whether exact decisions, which satisfy every `max_error`, may replace a test."""
        by_default = self.batch_size is None and self.sampling == "auto" and self.order == 2
        return by_default and self.epsilon is None and self.test == "auto"

    @property
    def schedule(self) -> Schedule | None:
        """How strict Student's t-test is at each draw; None if it does not change."""
        if self.test != "auto" or self.max_error is not None:
            return None
        epsilon = self._epsilon
        if callable(epsilon):
            return epsilon
        return Tightening(epsilon) if epsilon > 0.0 else None

    @property
    def tightens(self) -> bool:
        """Whether the schedule is the default one, which ends with the tuning phase."""
        return isinstance(self.schedule, Tightening) and not callable(self.epsilon)

    @property
    def tail(self) -> float:
        """A single tail probability for the test, from which the sizes of looks are chosen."""
        if self.max_error is not None:
            return self.max_error
        if self.test != "auto":
            epsilon = self.description.epsilon
            return USUAL_EPSILON if math.isnan(epsilon) else epsilon
        return self._epsilon(_SETTLED) if callable(self._epsilon) else self._epsilon

    @property
    def final_epsilon(self) -> float:
        """Tail probability at which the test stops after tuning; NaN if it varies."""
        varies = self.max_error is not None or callable(self.epsilon)
        return self.tail if self.description.has_verdicts and not varies else math.nan

    @property
    def is_exact(self) -> bool:
        """Whether every decision reads all rows."""
        return self.test == "auto" and self.max_error is None and self.epsilon == 0.0

    @property
    def growth(self) -> float:
        """Factor by which each look multiplies a uniform sample; 1 for looks of the same size."""
        return self.description.growth

    @property
    def order(self) -> int:
        """Requested order of the control variates; 0 for none."""
        if self.control_variates is None or (
            self.control_variates == "auto" and self.description.needs_bound
        ):
            return 0
        return 2 if self.control_variates == "auto" else self.control_variates

    @property
    def by_influence(self) -> bool:
        """Whether rows are sampled by influence if there are control variates."""
        return self.sampling in ("auto", "strata") and not self.description.needs_bound


def _checked_test(value: Any) -> SequentialTest | Literal["auto", "exact", "firefly"] | None:
    """A test, "auto", "exact", None, or what `FireflyMH` is."""
    if value is None:
        return None
    if isinstance(value, str) and value in ("auto", "exact", "firefly"):
        return cast(Literal["auto", "exact", "firefly"], value)
    return as_test(value)


_TINY, _HUGE = 1e-300, 1e300
"""In place of 0, the bound between equal points, and of infinity, far beyond the posterior."""


def bound_between(
    largest_difference: BoundOfDifferences | None, proposed: NDArray, current: NDArray
) -> float:
    """Largest absolute difference between two points, nats; infinite if none was given.

    Raises
    ------
    SettingError, SettingTypeError
        The user's function fails, or does not return a number of nats.
    """
    if largest_difference is None:
        return math.inf
    if not callable(largest_difference):
        return largest_difference
    try:
        bound = largest_difference(proposed, current)
    except Exception as error:
        raise SettingError(
            f"largest_difference(proposed, current) raised {type(error).__name__} ({error}): "
            "give a number of nats, or a function of two points that returns one."
        ) from error
    if isinstance(bound, np.ndarray) and bound.ndim == 0:
        bound = bound[()]
    bound = checked_number(
        "largest_difference(proposed, current)",
        bound,
        lambda value: value >= 0.0,
        "a bound of differences",
        "a function that returns a number of nats, 0 or more",
    )
    return min(max(bound, _TINY), _HUGE)


def _checked_epsilon(value: Any) -> float | Schedule:
    what = "a tail probability"
    return checked_schedule("epsilon", value, checked_tail, of="draw", what=what)
