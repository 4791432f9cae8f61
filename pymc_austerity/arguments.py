"""Checks of scalars and choices, with one dialect of messages: ``name=value is not X: do Y``."""

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, Literal

from pymc_austerity.errors import SettingError, SettingTypeError

_MOST_NAMES = 10

_NUMBERS_TRIED = (0, 1, 10, 100, 1_000, 10_000, 100_000)
"""Draws or steps for which a schedule is tried before it is used."""


# ------------------------------------------------------------------ numbers


def checked_number(
    name: str, value: Any, is_right: Callable[[float], bool], what: str, wanted: str
) -> float:
    """A number in a range, or one sentence about what it should be.

    Parameters
    ----------
    name : str
        Of the argument.
    value : object
        What the user gave.
    is_right : callable
        Whether a number lies in the range; false for NaN.
    what, wanted : str
        What the number means, and which numbers may be given, as in "a share" and "a number in
        [0, 1]".
    """
    sentence = f"{name}={value!r} is not {what}: give {wanted}."
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingTypeError(sentence)
    if not is_right(float(value)):
        raise SettingError(sentence)
    return float(value)


def checked_fraction(name: str, value: Any, largest: float, what: str) -> float:
    """A number between 0 and `largest`, with the ends."""
    wanted = f"a number between 0 and {largest:g}"
    return checked_number(name, value, lambda x: 0.0 <= x <= largest, what, wanted)


def checked_tail(name: str, value: Any) -> float:
    """A tail probability at which a test may stop."""
    return checked_fraction(name, value, 0.5, "the tail probability at which a test stops")


def checked_positive(name: str, value: Any, what: str) -> float:
    """A positive and finite number."""
    return checked_number(name, value, lambda x: 0.0 < x < math.inf, what, "a positive number")


def checked_rate(name: str, value: Any, what: str = "a rate to aim for") -> float:
    """A number between 0 and 1, without the ends."""
    return checked_number(name, value, lambda x: 0.0 < x < 1.0, what, "a number between 0 and 1")


def checked_target_acceptance(value: Any) -> float | None:
    """An acceptance rate that a proposal is tuned to, or None if it is "auto"."""
    rate = unless_auto("target_acceptance", value)
    what = "'auto' or a rate to aim for"
    return None if rate is None else checked_rate("target_acceptance", rate, what)


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
    return checked_fraction("audit", value, 1.0, "'auto' or the share of decisions to check")


def checked_schedule(
    name: str, value: Any, check: Callable[[str, Any], float], *, of: str, what: str
) -> float | Callable[[int], float]:
    """A number, or a function from the number of a draw, or of a step, to one."""
    if isinstance(value, type) or not callable(value):
        return check(name, value)
    for number in _NUMBERS_TRIED:
        try:
            found = value(number)
        except Exception as error:
            raise SettingError(
                f"{name}({number}) raised {type(error).__name__} ({error}): a schedule takes the "
                f"number of a {of}, from 0, and returns {what}."
            ) from error
        check(f"{name}({number})", found)
    return value


# ------------------------------------------------------------------ counts


def checked_count(name: str, value: Any, *, at_least: int = 1, what: str = "a count") -> int:
    """An integer that is not too small.

    Examples
    --------
    >>> checked_count("steps_per_draw", 0)
    Traceback (most recent call last):
        ...
    pymc_austerity.errors.SettingError: steps_per_draw=0 is not a count: give an integer of at
    least 1.
    """
    sentence = f"{name}={value!r} is not {what}: give an integer of at least {at_least}."
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SettingTypeError(sentence)
    if value < at_least:
        raise SettingError(sentence)
    return int(value)


def checked_axis(value: Any) -> int:
    """The axis of the rows, counted from the front."""
    return checked_count("axis", value, at_least=0, what="the number of an axis from the front")


def checked_batch_size(value: Any) -> int:
    """At least two rows, because a spread is estimated from them."""
    what = "a number of rows whose spread can be estimated"
    return checked_count("batch_size", value, at_least=2, what=what)


# ------------------------------------------------------------------ choices


def checked_choice(name: str, value: Any, choices: Sequence) -> None:
    """One of some values."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise SettingError(
            f"{name}={value!r} is not a choice: use {' or '.join(map(repr, choices))}."
        )


def choice_among(name: Any, names: Iterable[str]) -> str:
    """What may have been meant by a name that is not there, for the end of a sentence."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1) if isinstance(name, str) else []
    if close:
        return f"{close[0]!r} may be meant"
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"choose from {', '.join(map(repr, names[:_MOST_NAMES]))}{more}"


def refuse_positional(cls: type, arguments: Sequence) -> None:
    """All arguments but the variables have names."""
    if arguments:
        raise SettingTypeError(
            f"{cls.__name__} takes one argument without a name, the variables, and was given "
            f"{len(arguments)} more: name them, as in {cls.__name__}(epsilon=0.05)."
        )


def refuse_unknown(name: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Settings have names that a step method knows."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        meant = f"{close[0]!r} may be meant" if close else f"choose from {', '.join(known)}"
        raise SettingTypeError(f"{name} has no setting {unknown[0]!r}: {meant}.")


def unless_auto(name: str, value: Any) -> Any:
    """A setting that is chosen if it is "auto"; None is then returned.

    Parameters
    ----------
    name : str
        Of the setting.
    value : object
        What the user gave.

    Raises
    ------
    SettingTypeError
        None was given, which stands for doing without.

    Examples
    --------
    >>> unless_auto("batch_size", 500)
    500
    >>> unless_auto("batch_size", "auto")
    >>> unless_auto("batch_size", None)
    Traceback (most recent call last):
        ...
    pymc_austerity.errors.SettingTypeError: batch_size=None is not a choice, as None stands for
    doing without: leave it out, or give 'auto'.
    """
    if value is None:
        raise SettingTypeError(
            f"{name}=None is not a choice, as None stands for doing without: leave it out, or give "
            "'auto'."
        )
    return None if isinstance(value, str) and value == "auto" else value
