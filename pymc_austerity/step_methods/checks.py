"""Arguments of the step methods, checked when they are given."""

import difflib
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Literal

import pymc as pm

from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals import Proposal, UserProposal
from pymc_austerity.sequential import BarkerTest, Schedule, StoppingRule

__all__ = [
    "checked_audit",
    "checked_batch_size",
    "checked_choice",
    "checked_count",
    "checked_epsilon",
    "checked_fraction",
    "checked_max_error",
    "checked_proposal",
    "checked_schedule",
    "checked_test",
    "checked_variables",
]

_DRAWS_TRIED = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Draws for which a schedule is tried before it is used."""


def checked_fraction(name: str, value: Any, largest: float, meaning: str) -> float:
    """A number between 0 and `largest`, or one sentence about what it should be."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingTypeError(
            f"{name}={value!r} is not a number: it is {meaning}, between 0 and {largest}."
        )
    if not 0.0 <= float(value) <= largest:  # also refuses NaN
        raise SettingError(
            f"{name}={value!r} is out of range: it is {meaning}; give a number between 0 and "
            f"{largest}."
        )
    return float(value)


def checked_epsilon(value: Any) -> float:
    """The tail probability at which a test stops."""
    return checked_fraction("epsilon", value, 0.5, "the tail probability at which the test stops")


def checked_schedule(value: Any) -> float | Schedule:
    """A tail probability, or a function from the number of a draw to one."""
    if isinstance(value, type) or not callable(value):
        return checked_epsilon(value)
    for draw in _DRAWS_TRIED:
        try:
            epsilon = value(draw)
        except Exception as error:
            raise SettingError(
                f"epsilon({draw}) raised {type(error).__name__} ({error}): a schedule takes the "
                "number of a draw, from 0, and returns a tail probability."
            ) from error
        checked_fraction(f"epsilon({draw})", epsilon, 0.5, "the tail probability of that draw")
    return value


def checked_max_error(value: Any) -> float | None:
    """A share of wrong decisions, or None."""
    if value is None:
        return None
    error = checked_fraction("max_error", value, 0.5, "the largest share of wrong decisions")
    if not 0.0 < error < 0.5:
        raise SettingError(
            f"max_error={value!r} is out of range: give a number between 0 and 0.5, or epsilon=0 "
            "for decisions that are all exact."
        )
    return error


def checked_audit(value: Any) -> float | Literal["auto"]:
    """A share of decisions, or "auto"."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    return checked_fraction(
        "audit", value, 1.0, "the share of decisions to check, or 'auto' for a budget of time"
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
        f"test={value!r} is not a test: give a StudentT(epsilon), another rule of "
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
    if isinstance(value, type):
        raise SettingTypeError(
            f"proposal={value.__name__} is a class: give an instance, {value.__name__}()."
        )
    if all(hasattr(value, name) for name in ("init", "propose", "tune", "freeze")):
        return value
    if callable(value):
        return UserProposal(value)
    raise SettingTypeError(
        f"proposal of type {type(value).__name__} cannot propose: give a RandomWalk() or a "
        "function (point, rng) -> (new point, log-ratio)."
    )


def checked_variables(variables: Any, model: pm.Model) -> list:
    """The value variables of the variables, or names of variables, that a user gives.

    They come in the order of the model, in which PyMC joins their values where there are no others.
    """
    if not model.free_RVs:
        raise SettingError(
            "the model has no free variables, so there is nothing to sample: add a prior for "
            "each unknown, e.g. pm.Normal('beta')."
        )
    if variables is None:
        return list(model.value_vars)
    if isinstance(variables, str) or not isinstance(variables, Sequence):
        variables = [variables]
    if not variables:
        raise SettingError(
            "vars=[] names no variable to sample: leave it out for all of them, or name some."
        )
    chosen = [_value_variable(variable, model) for variable in variables]
    return [value for value in model.value_vars if value in chosen]


def _value_variable(variable: Any, model: pm.Model) -> Any:
    name = variable if isinstance(variable, str) else getattr(variable, "name", None)
    for random_variable in model.free_RVs:
        value = model.rvs_to_values[random_variable]
        if variable is random_variable or variable is value or name in (random_variable.name,):
            return value
    names = [random_variable.name for random_variable in model.free_RVs]
    raise SettingError(
        f"vars= names {name or variable!r}, which is not a free variable of the model: choose from "
        f"{_listed(names)}{_guess(name, names)}."
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _guess(name: str | None, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name or "", names, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
