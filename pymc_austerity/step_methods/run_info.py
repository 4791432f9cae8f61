"""The constants of a run, which become attributes of the result of ``pm.sample``."""

from collections.abc import Iterable
from typing import Any

__all__ = ["StatisticsTypes", "merged_constants"]


class StatisticsTypes(dict):
    """Types of the statistics of a step method, together with the constants of the run.

    PyMC passes this dictionary unchanged from the step method to the trace, from which
    `pymc_austerity._pymc.annotate_conversion` writes the constants to the attributes of
    ``sample_stats``.

    Attributes
    ----------
    constants : dict
        Names and values (numbers or strings) of the constants of the run.
    """

    def __init__(self, types: dict[str, type], constants: dict[str, Any]) -> None:
        super().__init__(types)
        self.constants = constants

    def __reduce__(self) -> tuple:
        return type(self), (dict(self), self.constants)


def merged_constants(statistics_types: Iterable[dict]) -> dict[str, Any]:
    """Constants that all step methods of a run have; lists if they differ.

    Parameters
    ----------
    statistics_types : iterable of dict
        Types of the statistics of each step method; those of other packages are ignored.

    Examples
    --------
    >>> ours = StatisticsTypes({}, {"epsilon": 0.05, "n_rows": 10, "max_error": float("nan")})
    >>> merged_constants([ours, {"tree_depth": int}])
    {'epsilon': 0.05, 'n_rows': 10, 'max_error': nan}
    """
    runs = [types.constants for types in statistics_types if isinstance(types, StatisticsTypes)]
    merged: dict[str, Any] = {}
    for name in runs[0] if runs else ():
        if not all(name in constants for constants in runs):
            continue
        values = [constants[name] for constants in runs]
        merged[name] = values[0] if all(_same(value, values[0]) for value in values) else values
    return merged


def _same(one: Any, other: Any) -> bool:
    """Whether two constants are equal; NaN, which represents a missing value, equals itself."""
    return bool(one == other or (one != one and other != other))
