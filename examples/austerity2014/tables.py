"""Tables with one column for each sampler and one row for each measured quantity."""

from collections.abc import Mapping

import numpy as np

from examples.austerity2014.experiment import NumberTable


def by_sampler(caption: str, rows: Mapping[str, Mapping[str, str]]) -> NumberTable:
    """A column for each sampler that any row names, with dashes where a row has no value for it.

    Parameters
    ----------
    caption : str
        What the numbers are means of, and their units.
    rows : mapping of str to mapping of str to str
        By quantity, its values by sampler.

    Returns
    -------
    NumberTable

    Examples
    --------
    >>> rows = {"steps": {"epsilon = 0": "10", "defaults": "20"}, "bias": {"defaults": "0.1"}}
    >>> table = by_sampler("Means of 3 chains.", rows)
    >>> table.header, table.rows
    (('epsilon', '0 (exact)', 'defaults'), (('steps', '10', '20'), ('bias', '–', '0.1')))
    """
    samplers = dict.fromkeys(name for values in rows.values() for name in values)
    return NumberTable(
        caption,
        ("epsilon", *map(heading, samplers)),
        tuple(
            (quantity, *(values.get(name, "–") for name in samplers))
            for quantity, values in rows.items()
        ),
    )


def heading(name: str) -> str:
    """Name of a sampler where epsilon is the title of the column or row."""
    short = name.removeprefix("epsilon = ").removesuffix(" epsilon")
    return "0 (exact)" if short in ("0", "exact") else short


def texts(values: Mapping[str, float], form: str) -> dict[str, str]:
    """Numbers by sampler as text, without those that are NaN.

    Examples
    --------
    >>> texts({"epsilon = 0": float("nan"), "defaults": 1234.5}, ",.0f")
    {'defaults': '1,234'}
    """
    return {name: f"{value:{form}}" for name, value in values.items() if not np.isnan(value)}
