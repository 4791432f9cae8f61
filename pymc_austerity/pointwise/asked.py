"""Which quantity is requested, for which rows, at which draws."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
from numpy.typing import ArrayLike, NDArray
from rich.progress import track

from pymc_austerity.errors import AusterityWarning, SettingError
from pymc_austerity.model.pointwise import PointwiseRows
from pymc_austerity.pointwise.draws import Draws, draws_of
from pymc_austerity.setup.source_rows import SourceRows, open_sources

__all__ = ["Asked", "Generators", "observed_names", "refuse_too_many"]

Generators = Callable[[int], list[np.random.Generator]]
"""Maps the number of a draw to the random generators for it."""

_NUMBERS, _MOST_ROWS = 4_000_000, 8_192
"""Numbers in a block of results (32 MB), and its rows."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A quantity of an observed variable for some of its rows, at all draws.

    Attributes
    ----------
    of_rows : PointwiseRows
    function : callable
        As from `PointwiseRows.function`.
    draws : Draws
    source : SourceRows or None
        The rows, where the model holds only some of them.
    numbers : int array, shape (m,), or range
        Numbers of the rows.
    dims : tuple of str
        Names of the axes, except for chain and draw.
    coords : dict
        Known coordinates of all axes.
    """

    of_rows: PointwiseRows
    function: Callable[..., NDArray]
    draws: Draws
    source: SourceRows | None
    numbers: NDArray[np.int64] | range
    dims: tuple[str, ...]
    coords: dict[str, Any]

    @classmethod
    def of(
        cls,
        of_rows: PointwiseRows,
        idata: Any,
        model: pm.Model,
        rows: Any = None,
        data: Mapping[str, Any] | None = None,
    ) -> "Asked":
        """Quantity with dimensions and coordinates as in PyMC.

        Raises
        ------
        SettingError, SettingTypeError
            There are no such rows, or no draws of the variables that they depend on.

        Warns
        -----
        AusterityWarning
            The run read rows of ``data=``, but these rows are those of the model.
        """
        draws, source, shape = draws_of(idata, of_rows.variables), None, list(of_rows.shape)
        if data is not None:
            source = SourceRows.of(open_sources(data, of_rows.examples), of_rows)
            shape[of_rows.axis] = source.n_rows
        else:
            _warn_of_an_example(idata, shape[of_rows.axis])
        numbers = _checked(rows, shape[of_rows.axis])
        known = model.named_vars_to_dims.get(of_rows.name) or [None] * len(of_rows.shape)
        dims = tuple(dim or f"{of_rows.name}_dim_{k}" for k, dim in enumerate(known))
        coords: dict[str, Any] = {name: draws.posterior[name] for name in ("chain", "draw")}
        for k, (dim, length) in enumerate(zip(dims, shape, strict=True)):
            known_labels = model.coords.get(dim)
            is_known = known_labels is not None and len(known_labels) == length  # of no example
            labels = np.asarray(known_labels) if is_known else pd.RangeIndex(length)
            is_chosen = k == of_rows.axis and not isinstance(numbers, range)
            coords[dim] = labels[numbers] if is_chosen else labels
        return cls(of_rows, of_rows.function(), draws, source, numbers, dims, coords)

    @property
    def name(self) -> str:
        """Name of the observed variable."""
        return self.of_rows.name

    @property
    def dtype(self) -> np.dtype:
        """Type of the quantity."""
        return np.dtype(self.of_rows.rows.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the quantity at one draw."""
        shape = list(self.of_rows.shape)
        shape[self.of_rows.axis] = len(self.numbers)
        return tuple(shape)

    def slices(self, n_samples: int, *, progressbar: bool = False) -> Iterator[slice]:
        """Blocks of rows whose results fit in memory."""
        width = n_samples * int(np.prod(self.shape)) // len(self.numbers)
        length = min(max(_NUMBERS // max(width, 1), 1), _MOST_ROWS)
        starts: Sequence[int] = range(0, len(self.numbers), length)
        for start in track(starts, self.name, disable=not progressbar or len(starts) == 1):
            yield slice(start, min(start + length, len(self.numbers)))

    def block(self, where: Any) -> list[NDArray]:
        """Data of some of the rows.

        Raises
        ------
        StorageError
            A source was changed or removed.
        """
        rows = self._rows(where)
        if self.source is not None:
            first, last = int(rows[0]), int(rows[-1]) + 1
            if np.array_equal(rows, np.arange(first, last)):
                return list(self.source.window(first, last))
            return list(self.source.take(rows))
        return [np.ascontiguousarray(leaf.array[rows]) for leaf in self.of_rows.leaves]

    def _rows(self, where: Any) -> NDArray[np.int64]:
        if not isinstance(self.numbers, range):
            return self.numbers[where]
        if isinstance(where, slice):
            return np.arange(*where.indices(len(self.numbers)))
        return np.asarray(where)

    def evaluated(
        self, where: Any, samples: Sequence[int], generators: Generators = lambda sample: []
    ) -> NDArray:
        """The quantity for some of the rows, shape (n_samples, ..., n_rows, ...).

        Parameters
        ----------
        where : slice or int array
            Which of `numbers` to evaluate.
        samples : sequence of int
            Numbers of the draws.
        generators : Generators
        """
        block, shape = self.block(where), list(self.shape)
        shape[self.of_rows.axis] = len(self._rows(where))
        result = np.empty((len(samples), *shape), dtype=self.dtype)
        for place, sample in enumerate(samples):
            point = self.draws.point(sample)
            result[place] = self.function(*point, *block, *generators(sample))
        return result


def observed_names(model: pm.Model, var_names: Sequence[str] | None) -> list[str]:
    """Names of observed variables, all of them by default.

    Raises
    ------
    SettingError
        There are none.
    """
    names = [v.name for v in model.observed_RVs] if var_names is None else list(var_names)
    if not names:
        raise SettingError("the model has no observed variables: give them data with observed=...")
    return names


def refuse_too_many(observations: ArrayLike, n_rows: int) -> None:
    """Check the number of rows of a sample, or their numbers, against the rows that exist.

    Raises
    ------
    SettingError
        There are fewer rows.
    """
    asked = np.asarray(observations)
    if asked.ndim == 0 and asked.dtype.kind in "iu" and not 1 <= asked <= n_rows:
        raise SettingError(
            f"observations={observations!r} is not a number of rows from 1 to {n_rows:,}: give "
            "fewer, or name with data= where all rows are."
        )
    if asked.ndim and asked.dtype.kind in "iu":
        _checked(asked, n_rows)


def _warn_of_an_example(idata: Any, n_rows: int) -> None:
    """Warn that the run read other rows than those that the model holds."""
    facts = getattr(getattr(idata, "sample_stats", None), "attrs", {})
    if facts.get("data"):
        warnings.warn(
            f"The run read {facts['n_rows']:,} rows of data= ({facts['data']}), and the model "
            f"holds {n_rows:,}, which are used here: pass data= as well, unless they are meant.",
            AusterityWarning,
            stacklevel=4,
        )


def _checked(rows: ArrayLike | None, n_rows: int) -> NDArray[np.int64] | range:
    if rows is None:
        return range(n_rows)
    found = np.atleast_1d(np.asarray(rows))
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
        raise SettingError(
            "rows must be the numbers of some rows, a sequence of integers: leave it out for all "
            "of them."
        )
    if found.min() < 0 or found.max() >= n_rows:
        raise SettingError(
            f"rows must be from 0 to {n_rows - 1:,}, not from {found.min():,} to {found.max():,}: "
            "leave out the others, or name with data= where all rows are."
        )
    return found.astype(np.int64)
