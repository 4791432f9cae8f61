"""A model that was split into a row-free part and rows, and verified."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.model import (
    RowLikelihood,
    Verified,
    split_log_density,
    verify,
    verify_examples,
)
from pymc_austerity.model.cut import array_of
from pymc_austerity.rows import ArrayRows, Block, SharedRows, Store
from pymc_austerity.setup.first_pass import first_pass, windows_of
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
        Problems with products in place of factors, by the names of the variables and of those that
        may be factors.
    no_groups : str
        Why levels are not moved by themselves, as a clause; empty if that was not tried.
    has_groups : bool
        Whether they could be, where that is not likely to be best.
    seconds : float
        Time that preparing took.
    stages : dict of str to float
        The same by its stages.
    """

    likelihood: RowLikelihood
    point: Mapping[str, NDArray]
    verified: Verified
    rng: np.random.Generator
    seconds: float = 0.0
    from_sources: SourceRows | None = None
    stages: dict[str, float] = field(default_factory=dict)
    targets: dict[tuple[str, ...], Any] = field(default_factory=dict)
    problems: dict[tuple[str, ...], Any] = field(default_factory=dict)
    centered: dict[tuple[tuple[str, ...], tuple[str, ...]], Any] = field(default_factory=dict)
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
    started, point = time.perf_counter(), checked_point(initial_point, model)
    generator = checked_generator(_ORDER_OF_ROWS if rng is None else rng).spawn(1)[0]
    say("cutting the model's graph to rows")
    names, folder = checked_data(data), checked_setup_folder(setup_folder, data)
    split = split_log_density(model, likelihood=likelihood, axis=axis, point=point, examples=names)
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
    seconds = time.perf_counter() - started
    return PreparedModel(split, point, verified, generator, seconds, rows)
