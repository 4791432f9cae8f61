"""A user's own stopping rule as a test."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pymc_austerity.errors import SettingTypeError
from pymc_austerity.sequential.protocols import (
    Evidence,
    SequentialTest,
    StoppingRule,
    TestDescription,
)
from pymc_austerity.sequential.stopping import StoppingTest

__all__ = ["UserTest", "as_test"]


@dataclass(frozen=True)
class UserTest(StoppingTest):
    """A test made from an object with the methods ``stops`` and ``error``.

    Parameters
    ----------
    rule : StoppingRule
        Its attributes ``epsilon`` and ``growth`` are used if it has them.
    """

    rule: StoppingRule

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""
        name, epsilon = type(self.rule).__name__, getattr(self.rule, "epsilon", None)
        summary, growth = name, getattr(self.rule, "growth", 1.0)
        if epsilon is None:
            return TestDescription(name, summary, growth=growth)
        summary = f"{summary} with epsilon={epsilon:g}"
        return TestDescription(name, summary, epsilon=epsilon, growth=growth)

    def stops(self, evidence: Evidence) -> bool:
        """Whether the evidence suffices to decide now."""
        return self.rule.stops(evidence)

    def error(self, evidence: Evidence) -> float:
        """Bound or estimate of the probability that a decision on this evidence is wrong."""
        return self.rule.error(evidence)


def as_test(value: Any) -> SequentialTest:
    """A test, or a user's stopping rule wrapped as one.

    Raises
    ------
    SettingTypeError
        It is neither.
    """
    if isinstance(value, type):
        raise SettingTypeError(
            f"test={value.__name__} is not a test but its class: give an instance of it."
        )
    if all(hasattr(value, name) for name in ("decide", "description")):
        return value
    if all(hasattr(value, name) for name in ("stops", "error")):
        return UserTest(value)
    raise SettingTypeError(
        f"test={value!r} is not a test: give a StudentTTest(epsilon), another test of "
        "pymc_austerity.sequential, 'exact', 'auto' or None."
    )
