"""The first pass over rows in sources: checks, and a random sample."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError
from pymc_austerity.model import RowLikelihood, Verified
from pymc_austerity.rows import ArrayRows, Block
from pymc_austerity.setup.source_rows import SourceRows

_SAMPLE = 50_000
"""Rows of the sample, which represents all rows when a search begins."""

_MOST_WRONG = 1_000
"""Number of wrong rows at which counting stops."""

_MOST_COMPARED, _MOST_WINDOWS = 4_000, 16


def first_pass(
    rows: SourceRows,
    likelihood: RowLikelihood,
    verified: Verified,
    start: Sequence[NDArray],
    rng: np.random.Generator,
) -> None:
    """Evaluate every row once, and keep a random sample of the rows.

    Parameters
    ----------
    rows : SourceRows
    likelihood, verified
        Of the model.
    start : sequence of arrays
        Values of the value variables, where the log-likelihood should be finite.
    rng : numpy.random.Generator
        Draws the sample, without replacement.

    Raises
    ------
    DataError
        The log-likelihood of some rows is not finite, or rows read levels that do not exist.
    """
    positions = np.sort(rng.choice(rows.n_rows, min(_SAMPLE, rows.n_rows), replace=False))
    values = list(start)

    def look(first: int, block: Block) -> tuple[Block, list[int]]:
        low, high = np.searchsorted(positions, [first, first + len(block[0])])
        wrong_here = _not_finite(lambda part: verified.on_block(values, part), block, first)
        return tuple(array[positions[low:high] - first] for array in block), wrong_here

    kept: list[Block] = []
    wrong: list[int] = []
    for some, wrong_here in rows.mapped_with_numbers(look, arguments=("first", positions, values)):
        kept.append(some)
        wrong += wrong_here
        if len(wrong) >= _MOST_WRONG:
            break
    if wrong:
        raise DataError(_about(wrong, rows, likelihood, verified, values))
    rows.sample = ArrayRows([np.concatenate(arrays) for arrays in zip(*kept, strict=True)])


def windows_of(rows: SourceRows, length: int, rng: np.random.Generator) -> list[dict[str, NDArray]]:
    """Windows of the sources at random positions, each with as many rows as the example."""
    n_windows = min(_MOST_WINDOWS, max(2, _MOST_COMPARED // length))
    if rows.n_rows < length:
        short = rows.data(0, rows.n_rows)
        again = np.arange(length) % rows.n_rows
        return [{name: array[again] for name, array in short.items()}]
    firsts = rng.integers(0, rows.n_rows - length, size=n_windows, endpoint=True)
    return [rows.data(int(first), int(first) + length) for first in firsts]


def _not_finite(function: Callable[[Block], NDArray], block: Block, first: int = 0) -> list[int]:
    """Rows of a block with a log-likelihood that is not finite, found by bisection.

    A check that fails for one row fails for all rows that are evaluated together.
    """
    n_rows = len(block[0])
    if _is_finite(function, block):
        return []
    if n_rows == 1:
        return [first]
    found: list[int] = []
    for start, stop in ((0, n_rows // 2), (n_rows // 2, n_rows)):
        part = tuple(array[start:stop] for array in block)
        found += _not_finite(function, part, first + start)
        if len(found) >= _MOST_WRONG:
            break
    return found


def _is_finite(function: Callable[[Block], NDArray], block: Block) -> bool:
    try:
        with np.errstate(all="ignore"):
            return bool(np.isfinite(function(block)).all())
    except IndexError:
        return False


def _about(
    wrong: Sequence[int],
    rows: SourceRows,
    likelihood: RowLikelihood,
    verified: Verified,
    start: list[NDArray],
) -> str:
    row = wrong[0]
    at_least = "at least " if len(wrong) >= _MOST_WRONG else ""
    many = f"{at_least}{min(len(wrong), _MOST_WRONG):,} row{'s' if len(wrong) > 1 else ''}"
    data = {name: array[0] for name, array in rows.data(row, row + 1).items()}
    try:
        verified.on_block(start, rows.window(row, row + 1))
    except IndexError as error:
        first_line = str(error).splitlines()[0]
        levels = {n: v for n, v in data.items() if v.dtype.kind in "iu"}
        return (
            f"{many} in the sources read{'' if len(wrong) > 1 else 's'} levels that the model does "
            f"not have, the first in row {row:,} ({_values(levels)}; {first_line}): give the model "
            "as many levels as the sources have."
        )
    bad = {n: v for n, v in data.items() if v.dtype.kind == "f" and not np.isfinite(v).all()}
    names = ", ".join(map(repr, likelihood.subsampled))
    beginning = f"the log-likelihood of {names} is not finite at the starting point in {many}"
    if bad:
        return (
            f"{beginning} of the sources, because {', '.join(map(repr, bad))} holds NaN or "
            f"infinite values, first in row {row:,}: leave these rows out, or impute what is "
            "missing."
        )
    return (
        f"{beginning} of the sources, first in row {row:,} ({_values(data)}): choose another "
        "start, as in pm.Normal(..., initval=1.0), or look for values outside of the support of "
        "their distribution."
    )


def _values(data: dict[str, NDArray]) -> str:
    scalars = [f"{name!r} is {value}" for name, value in data.items() if np.ndim(value) == 0]
    return ", ".join(scalars) or ", ".join(map(repr, data))
