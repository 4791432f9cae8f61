"""How the rows of a decision are sampled and turned into differences."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import Block, RowDraw, RowStream, StratifiedWindows
from pymc_austerity.sequential import StratifiedDesign, StratifiedSurvey, Survey, UniformSurvey

__all__ = ["RowFunction", "Sampling", "StratifiedSampling", "UniformSampling"]

RowFunction: TypeAlias = Callable[..., NDArray[np.float64]]
"""``f(proposed, current, *block)``: differences of the rows in a block, shape (rows,), nats."""


class Sampling(Protocol):
    """Where the sequential test gets its samples from."""

    @property
    def constants(self) -> dict[str, Any]:
        """What is constant over the run, by name."""
        ...

    def begin(self, proposed: NDArray, current: NDArray, rng: np.random.Generator) -> Survey:
        """A new sample of the differences between two points."""
        ...


@dataclass(frozen=True)
class UniformSampling:
    """Every row is as likely as any other.

    Parameters
    ----------
    function : callable
        Row differences or their residuals.
    draw : RowDraw
        Way of drawing rows.
    n_rows : int
        Rows there are.
    batch_size : int
        Rows of each look.
    """

    function: RowFunction
    draw: RowDraw
    n_rows: int
    batch_size: int

    @property
    def constants(self) -> dict[str, Any]:
        """What is constant over the run, by name."""
        return {"sampling": type(self.draw).__name__, "batch_size": self.batch_size}

    def begin(self, proposed: NDArray, current: NDArray, rng: np.random.Generator) -> UniformSurvey:
        """A new sample of the differences between two points."""
        stream = _Differences(self.function, proposed, current, self.draw.begin(rng))
        return UniformSurvey(stream, n_rows=self.n_rows, batch_size=self.batch_size)


class _Differences:
    __slots__ = ("current", "function", "proposed", "rows")

    def __init__(
        self, function: RowFunction, proposed: NDArray, current: NDArray, rows: RowStream
    ) -> None:
        self.function = function
        self.proposed = proposed
        self.current = current
        self.rows = rows

    def read(self, n_rows: int) -> Iterator[NDArray]:
        for block in self.rows.read(n_rows):
            yield self.function(self.proposed, self.current, *block)


@dataclass(frozen=True)
class StratifiedSampling:
    """Rows are sampled within strata of influence.

    Parameters
    ----------
    function : callable
        Row differences or their residuals.
    windows : StratifiedWindows
        Rows stored stratum by stratum.
    """

    function: RowFunction
    windows: StratifiedWindows

    @property
    def constants(self) -> dict[str, Any]:
        """What is constant over the run, by name."""
        strata = self.windows.strata
        return {
            "sampling": type(self.windows).__name__,
            "batch_size": int(strata.first_counts.sum()),
            "stratum_sizes": strata.sizes.tolist(),
            "stratum_first_counts": strata.first_counts.tolist(),
        }

    def begin(
        self, proposed: NDArray, current: NDArray, rng: np.random.Generator
    ) -> StratifiedSurvey:
        """A new sample of the differences between two points."""
        stream = _StratifiedDifferences(self.function, proposed, current, self.windows.begin(rng))
        return StratifiedSurvey(stream, self.design)

    @cached_property
    def design(self) -> StratifiedDesign:
        """The strata as the survey knows them."""
        return StratifiedDesign(self.windows.strata.sizes, self.windows.strata.first_counts)


class _StratifiedRows(Protocol):
    def read(self, counts: NDArray[np.int64]) -> Iterator[Block]: ...


class _StratifiedDifferences:
    __slots__ = ("current", "function", "proposed", "rows")

    def __init__(
        self, function: RowFunction, proposed: NDArray, current: NDArray, rows: _StratifiedRows
    ) -> None:
        self.function = function
        self.proposed = proposed
        self.current = current
        self.rows = rows

    def read(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        pieces = [self.function(self.proposed, self.current, *b) for b in self.rows.read(counts)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
