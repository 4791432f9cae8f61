"""A model that was split into a row-free part and rows, and verified."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.errors import DataError
from pymc_austerity.model import (
    RowLikelihood,
    Verified,
    faults_named,
    split_log_density,
    verify,
    verify_examples,
)
from pymc_austerity.model.cut import array_of
from pymc_austerity.rows import ArrayRows, Block, SharedRows, Store
from pymc_austerity.setup.model_inputs import (
    checked_data,
    checked_generator,
    checked_point,
    checked_setup_folder,
)
from pymc_austerity.setup.pass_cache import PassCache, about_set_up
from pymc_austerity.setup.setup_progress import Say, collection_paused
from pymc_austerity.setup.source_rows import SourceRows, open_sources

_log = logging.getLogger("pymc.austerity")

_ORDER_OF_ROWS = 20_140_621
"""Seed of the order in which rows are stored where no ``rng`` is given: the results of
``pm.sample`` then depend on its ``random_seed`` alone."""


@dataclass(eq=False)
class PreparedModel:
    """A model that was split and verified; several step methods can share it and its rows.

    Attributes
    ----------
    likelihood : RowLikelihood
        Row-free part and row part of the log-density.
    point : dict
        Point at which it was verified.
    verified : Verified
        Its parts in NumPy.
    rng : numpy.random.Generator
        Source of the order of the rows and of other random numbers of set-up.
    from_sources : SourceRows or None
        All rows where the model holds a few of them.
    targets : dict
        Targets built from it, by the names of the variables, for step methods with the same
        settings.
    problems : dict
        The problems that were posed, by the names of the variables.
    centered : dict
        Problems with products in place of factors, by the names of the variables.
    no_groups : str
        Why levels are not moved by themselves, as a clause; empty if that was not tried.
    has_groups : bool
        Whether they could be, where that is not likely to be best.
    """

    likelihood: RowLikelihood
    point: Mapping[str, NDArray]
    verified: Verified
    rng: np.random.Generator
    from_sources: SourceRows | None = None
    targets: dict[tuple[str, ...], Any] = field(default_factory=dict)
    problems: dict[tuple[str, ...], Any] = field(default_factory=dict)
    centered: dict[tuple[str, ...], Any] = field(default_factory=dict)
    no_groups: str = ""
    has_groups: bool = False

    @property
    def rows(self) -> ArrayRows | SourceRows:
        """All rows in the user's order, for passes over them."""
        return self.from_sources or ArrayRows(self.likelihood.arrays)

    @property
    def some_rows(self) -> ArrayRows:
        """Rows that are there at once: all of them, or a random sample of those in sources."""
        if self.from_sources is None:
            return ArrayRows(self.likelihood.arrays)
        assert self.from_sources.sample is not None
        return self.from_sources.sample

    @property
    def fingerprint(self) -> str:
        """Identifies these rows among others of the same number."""
        own = self.likelihood.fingerprint
        return own if self.from_sources is None else f"{own}-{self.from_sources.fingerprint}"

    def end_setup(self) -> None:
        """End set-up: results of passes are no longer kept."""
        if self.from_sources is not None:
            self.from_sources.kept = None

    @cached_property
    def shuffled_rows(self) -> Store:
        """The rows in random order."""
        return self.shuffled(self.likelihood.arrays)

    def shuffled(
        self, arrays: Sequence[NDArray], block_of: Callable[[Block], Block] = tuple
    ) -> Store:
        """Store arrays of all rows, or what is made of blocks of sources, in random order."""
        if self.from_sources is not None:
            return self.from_sources.shuffled(self.rng, block_of)
        return SharedRows(arrays, self.rng.permutation(self.likelihood.n_rows))


def _refuse_start_at_infinity(point: Mapping[str, NDArray]) -> None:
    wrong = [name for name, value in point.items() if not np.isfinite(value).all()]
    if wrong:
        raise DataError(
            f"initial values of {', '.join(map(repr, wrong))} are not finite: look at what their "
            "priors depend on, or give other values, as in pm.Normal(..., initval=1.0)."
        )


def _say_if_mapped(model: pm.Model) -> None:
    """Log the remedy where a user may expect that rows stay in their file.

    PyMC converts and copies its inputs. Observed arrays keep the type of a memory map, by which
    they are recognized; those of ``pm.Data`` do not.
    """
    mapped = [
        rv.name
        for rv in model.observed_RVs
        if isinstance(array_of(model.rvs_to_values[rv]), np.memmap)
    ]
    if mapped:
        _log.info(
            f"{', '.join(map(repr, mapped))} was given as a memory map, which PyMC reads into "
            "memory, as it does with maps in pm.Data: AusterityMH(data={...}) leaves rows where "
            "they are."
        )


@collection_paused()
def prepare(
    model: pm.Model,
    *,
    likelihood: Sequence[str] | None = None,
    axis: int = 0,
    initial_point: Mapping[str, NDArray] | None = None,
    rng: Any = None,
    data: Mapping[str, Any] | None = None,
    setup_folder: Any = None,
    say: Say = str,
) -> PreparedModel:
    """Split the log-density of a model and verify the split."""
    point = checked_point(initial_point, model)
    _refuse_start_at_infinity(point)
    generator = checked_generator(_ORDER_OF_ROWS if rng is None else rng).spawn(1)[0]
    say("cutting the model's graph to rows")
    names, folder = checked_data(data), checked_setup_folder(setup_folder, data)
    its: dict[str, Any] = {"likelihood": likelihood, "axis": axis, "point": point}
    with faults_named(model):
        split = split_log_density(model, examples=names, **its)
        say("verifying the cut")
        verified = verify(split, point, rng=generator)
    rows = None
    if data is None:
        _say_if_mapped(model)
    else:
        rows = SourceRows.of(open_sources(data, split.examples), split)
        start = [np.asarray(point[v.name], dtype=v.dtype) for v in split.value_vars]
        if folder is not None:
            other = rows.fingerprint, start, repr(generator.bit_generator.state)
            rows.kept = PassCache(folder, about_set_up(rows.sources, split, *other))
        say(f"looking at {rows.n_rows:,} rows")
        first_pass(rows, split, verified, start, generator)
        verify_examples(
            split, verified, point, windows_of(rows, split.n_in_model, generator), rng=generator
        )
        split = replace(split, n_rows=rows.n_rows)
    return PreparedModel(split, point, verified, generator, rows)


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
    values, codes = list(start), likelihood.codes

    def log_likelihoods(part: Block) -> NDArray:
        for k in codes:
            if (part[k] < 0).any():  # which NumPy would count from the end
                raise IndexError("a negative code, as pandas gives to missing categories")
        return verified.on_block(values, part)

    def look(first: int, block: Block) -> tuple[Block, list[int]]:
        low, high = np.searchsorted(positions, [first, first + len(block[0])])
        wrong_here = _not_finite(log_likelihoods, block, first)
        return tuple(array[positions[low:high] - first] for array in block), wrong_here

    kept: list[Block] = []
    wrong: list[int] = []
    for some, wrong_here in rows.mapped_with_numbers(look, arguments=("first", positions, values)):
        kept.append(some)
        wrong += wrong_here
        if len(wrong) >= _MOST_WRONG:
            break
    if wrong:
        raise DataError(_about(wrong, rows, likelihood, log_likelihoods))
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
    log_likelihoods: Callable[[Block], NDArray],
) -> str:
    row = wrong[0]
    at_least = "at least " if len(wrong) >= _MOST_WRONG else ""
    many = f"{at_least}{min(len(wrong), _MOST_WRONG):,} row{'s' if len(wrong) > 1 else ''}"
    data = {name: array[0] for name, array in rows.data(row, row + 1).items()}
    try:
        log_likelihoods(rows.window(row, row + 1))
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
