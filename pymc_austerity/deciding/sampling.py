"""How the rows of a decision are sampled and turned into differences."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import (
    Looks,
    constant_looks,
    doubling_looks,
    stratified_looks,
    stratified_spread,
)
from pymc_austerity.rows import (
    AllRows,
    FreshRows,
    RowDraw,
    RowSource,
    StratifiedWindows,
    Windows,
    blocks_of,
)
from pymc_austerity.sequential import StratifiedSurvey, UniformSurvey
from pymc_austerity.strata import Strata

_MOST_LOOKS = 500

_OF_RANDOM_WALK = 2.38, 0.3
"""Spread of the sum of the differences, nats, and acceptance: see `expected_characteristic`."""

RowFunction: TypeAlias = Callable[..., NDArray[np.float64]]
"""``f(proposed, current, *block)``: differences of the rows in a block, shape (rows,), nats."""


@dataclass(frozen=True)
class UniformSampling:
    """Uniform samples of the rows.

    Parameters
    ----------
    function : callable
        Row differences or their residuals.
    draw : RowDraw
        Method of drawing rows.
    n_rows : int
        Number of all rows.
    batch_size : int
        Rows of the first look.
    growth : float
        Factor by which each further look multiplies the rows read; 1 for looks of the same size.
    of_residuals : bool
        Whether the function returns residuals.
    """

    function: RowFunction
    draw: RowDraw
    n_rows: int
    batch_size: int
    growth: float = 1.0
    of_residuals: bool = False

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, by name."""
        return {"sampling": type(self.draw).__name__, "batch_size": self.batch_size}

    @property
    def is_exact(self) -> bool:
        """Whether the first look reads all rows."""
        return self.batch_size >= self.n_rows

    @cached_property
    def strata(self) -> Strata:
        """A single stratum."""
        return Strata.single(self.n_rows, self.batch_size)

    @property
    def looks(self) -> Looks:
        """When a test looks; a few large looks replace a great number of small ones."""
        if self.growth == 1.0:
            return constant_looks(max(self.batch_size, self.n_rows // _MOST_LOOKS), self.n_rows)
        return doubling_looks(self.batch_size, self.n_rows)

    @property
    def usual_spread(self) -> tuple[float, float]:
        """That of a random walk at the scale of the posterior, which is unknown for residuals."""
        return (math.nan, math.nan) if self.of_residuals else _OF_RANDOM_WALK

    def begin(
        self,
        proposed: NDArray,
        current: NDArray,
        rng: np.random.Generator,
        batch_size: int | None = None,
        largest_difference: float = math.inf,
    ) -> UniformSurvey:
        """A new sample of the differences between two points, drawn at its first look."""
        return UniformSurvey(
            _Differences(self.function, proposed, current, self.draw, rng),
            n_rows=self.n_rows,
            batch_size=batch_size or self.batch_size,
            growth=self.growth,
            largest_difference=largest_difference,
        )

    def with_first_look(self, n_rows: int) -> "UniformSampling":
        """The same with a first look of `n_rows` rows, at most all of them."""
        return replace(self, batch_size=min(n_rows, self.n_rows))


@dataclass(slots=True)
class _Differences:
    function: RowFunction
    proposed: NDArray
    current: NDArray
    draw: Any
    rng: np.random.Generator
    rows: Any = None  # which are drawn when the first of them are read

    def read(self, n_rows: Any) -> Any:
        if self.rows is None:
            self.rows = self.draw.begin(self.rng)
        for block in self.rows.read(n_rows):
            yield self.function(self.proposed, self.current, *block)


@dataclass(frozen=True, eq=False)
class StratifiedSampling:
    """Rows are sampled within strata of influence.

    Parameters
    ----------
    function : callable
        Row differences or their residuals.
    windows : StratifiedWindows
        Rows stored stratum by stratum.
    deviations : float array, shape (H,)
        Usual standard deviation of the differences within each stratum, nats.
    """

    function: RowFunction
    windows: StratifiedWindows
    deviations: NDArray[np.float64]

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, by name."""
        strata = self.windows.strata
        return {
            "sampling": type(self.windows).__name__,
            "batch_size": strata.n_first,
            "stratum_sizes": strata.sizes.tolist(),
            "stratum_first_counts": strata.first_counts.tolist(),
        }

    @property
    def is_exact(self) -> bool:
        """Whether the first look reads all rows."""
        return self.strata.n_first == self.strata.n_rows

    @property
    def looks(self) -> Looks:
        """When a test looks at differences like those of the pilot pairs."""
        return stratified_looks(self.strata, self.deviations)

    @property
    def usual_spread(self) -> tuple[float, float]:
        """That of the pilot pairs, with as many proposals accepted as possible."""
        return float(stratified_spread(self.strata, self.deviations)), 1.0

    def begin(
        self,
        proposed: NDArray,
        current: NDArray,
        rng: np.random.Generator,
        batch_size: int | None = None,
        largest_difference: float = math.inf,
    ) -> StratifiedSurvey:
        """A new sample of the differences between two points, drawn at its first look."""
        its = self if batch_size is None else self.with_first_look(batch_size)
        stream = _StratifiedDifferences(self.function, proposed, current, its.windows, rng)
        return StratifiedSurvey(stream, its.strata)

    def with_first_look(self, n_rows: int) -> "StratifiedSampling":
        """The same with a first look of `n_rows` rows or more; see `Strata.with_first_look`."""
        if n_rows <= self.strata.n_first:
            return self
        if n_rows not in self._larger:
            windows = replace(self.windows, strata=self.strata.with_first_look(n_rows))
            self._larger[n_rows] = replace(self, windows=windows)
        return self._larger[n_rows]

    @cached_property
    def _larger(self) -> "dict[int, StratifiedSampling]":
        """The same with larger first looks, which decisions use again."""
        return {}

    @property
    def strata(self) -> Strata:
        """The strata of the stored rows."""
        return self.windows.strata


Sampling: TypeAlias = UniformSampling | StratifiedSampling
"""The samples of a sequential test.

When it begins, a sample is told the number of rows of its first look, as `with_first_look` is, and
a bound on the differences, for tests that need one and for uniform samples only.
"""


class _StratifiedDifferences(_Differences):
    __slots__ = ()

    def read(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        pieces = list(_Differences.read(self, counts))
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


_USUAL_BATCH = 500
"""Rows of a look, unless the user or the influence of the rows determines their number."""


def row_draw(source: RowSource, settings: Settings) -> RowDraw:
    """The user's way of drawing rows."""
    return (FreshRows if settings.sampling == "fresh" else Windows)(source)


def uniform_sampling(
    function: RowFunction, source: RowSource, settings: Settings, *, of_residuals: bool = False
) -> tuple[UniformSampling, str]:
    """Uniform samples by the user's settings, and their description."""
    n_rows, batch = source.n_rows, settings.batch_size or _USUAL_BATCH
    if settings.is_exact or batch >= n_rows:
        why = "epsilon=0" if settings.is_exact else f"a batch of {batch:,}"
        sampling = UniformSampling(function, AllRows(source), n_rows, n_rows)
        return sampling, f"All {n_rows:,} rows at every step ({why})"
    growth, draw = settings.growth, row_draw(source, settings)
    sampling = UniformSampling(function, draw, n_rows, batch, growth, of_residuals)
    fresh = " drawn anew" if settings.sampling == "fresh" else ""
    look = "a look" if growth == 1.0 else "the first look"
    return sampling, f"Uniform samples of {n_rows:,} rows{fresh}, {batch:,} at {look}"


AT_ONCE = 64
"""Proposals for which rows are read once: reading a row for more of them costs no less for each."""

_ROWS = 1_024
"""Rows of a block: their predictors at all points stay in the cache."""

RowSums: TypeAlias = Callable[..., NDArray[np.float64]]
"""``f(points, *block)``: log-likelihoods of the rows in a block, summed at each point, nats."""


@dataclass(frozen=True)
class TotalsOfAll:
    """Log-likelihoods of all rows, summed at each of many points.

    Parameters
    ----------
    sums : callable
        Those of a block.
    source : RowSource
        All rows.
    """

    sums: RowSums
    source: RowSource

    def __call__(self, points: NDArray) -> NDArray[np.float64]:
        """At points, shape (n, d): float array, shape (n,), nats; NaN where a row is not finite."""
        total = np.zeros(len(points))
        for block in blocks_of(self.source, _ROWS):
            total += self.sums(points, *block)
        return np.where(np.isfinite(total), total, np.nan)


@dataclass(frozen=True)
class AllRowsTogether(UniformSampling):
    """All rows, read once for many proposals: these do not depend on where the chain is.

    Parameters
    ----------
    totals : TotalsOfAll
        The rows at many points.
    """

    totals: TotalsOfAll = field(kw_only=True)
