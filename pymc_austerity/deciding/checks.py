"""Settings of the step methods, checked when they are given."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

from pymc_austerity.arguments import checked_fraction, checked_number, checked_tail
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals import Proposal, as_proposal
from pymc_austerity.sequential import BarkerTest, Schedule, StoppingRule

__all__ = [
    "checked_audit",
    "checked_batch_size",
    "checked_choice",
    "checked_count",
    "checked_max_error",
    "checked_proposal",
    "checked_schedule",
    "checked_test",
]

_DRAWS_TRIED = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Draws for which a schedule is tried before it is used."""


def checked_schedule(value: Any) -> float | Schedule:
    """A tail probability, or a function from the number of a draw to one."""
    if isinstance(value, type) or not callable(value):
        return checked_tail("epsilon", value)
    for draw in _DRAWS_TRIED:
        try:
            epsilon = value(draw)
        except Exception as error:
            raise SettingError(
                f"epsilon({draw}) raised {type(error).__name__} ({error}): a schedule takes the "
                "number of a draw, from 0, and returns a tail probability."
            ) from error
        checked_tail(f"epsilon({draw})", epsilon)
    return value


def checked_max_error(value: Any) -> float | None:
    """A share of wrong decisions, or None."""
    if value is None:
        return None
    return checked_number(
        "max_error",
        value,
        lambda error: 0.0 < error < 0.5,
        "a share of wrong decisions",
        "a number between 0 and 0.5, or epsilon=0 for decisions that are all exact",
    )


def checked_audit(value: Any) -> float | Literal["auto"]:
    """A share of decisions, or "auto"."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    return checked_fraction(
        "audit", value, 1.0, "'auto', for a budget of time, or the share of decisions to check"
    )


def checked_test(value: Any) -> StoppingRule | BarkerTest | Literal["auto"] | None:
    """A stopping rule, a Barker test, "auto" or None."""
    if value is None:
        return None
    if isinstance(value, str) and value == "auto":
        return "auto"
    if isinstance(value, type):
        raise SettingTypeError(f"test={value.__name__} is a class: give an instance of it.")
    if isinstance(value, BarkerTest) or all(hasattr(value, name) for name in ("stops", "error")):
        return value
    raise SettingTypeError(
        f"test={value!r} is not a test: give a StudentTTest(epsilon), another rule of "
        "pymc_austerity.sequential, 'auto' or None."
    )


def checked_choice(name: str, value: Any, choices: Sequence) -> None:
    """One of some values."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise SettingError(
            f"{name}={value!r} is not a choice: use {' or '.join(map(repr, choices))}."
        )


def checked_batch_size(value: Any) -> int | None:
    """At least two rows, because a spread is estimated from them; None leaves it to us."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SettingTypeError(
            f"batch_size={value!r} is not a number of rows: give an integer of at least 2."
        )
    if value < 2:
        raise SettingError(
            f"batch_size={value} is too small: the spread of the differences is estimated from "
            "the first batch; give at least 2, and some hundreds for a test that holds."
        )
    return int(value)


def checked_count(name: str, value: Any) -> int:
    """An integer of at least one."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SettingTypeError(f"{name}={value!r} is not a count: give an integer of at least 1.")
    if value < 1:
        raise SettingError(f"{name}={value} is too small: give an integer of at least 1.")
    return int(value)


def checked_proposal(value: Any) -> Proposal[Any] | None:
    """A proposal, or a user's function behind the same contract; None leaves it to us."""
    if value is None:
        return None
    return as_proposal(value)
