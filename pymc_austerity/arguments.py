"""Sentences about arguments that every part of the package needs."""

import difflib
import math
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

from pymc_austerity.errors import SettingError, SettingTypeError

__all__ = [
    "checked_fraction",
    "checked_number",
    "checked_positive",
    "checked_rate",
    "checked_tail",
    "choice_among",
]

_MOST_NAMES = 10


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


def choice_among(name: Any, names: Iterable[str]) -> str:
    """What may have been meant by a name that is not there, for the end of a sentence."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1) if isinstance(name, str) else []
    if close:
        return f"{close[0]!r} may be meant"
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"choose from {', '.join(map(repr, names[:_MOST_NAMES]))}{more}"
