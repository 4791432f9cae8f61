"""A model with groups: its blocks, its rows by level, and sums over all rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity.levels import ResidualsByAddress
from pymc_austerity.model import (
    Blocks,
    Factor,
    Kernel,
    LevelTerms,
    PartialDerivatives,
    PredictorDerivatives,
    RowStructure,
    data_reader,
)
from pymc_austerity.rows import LARGEST_BLOCK, ArrayRows, Block, SharedRows, blocks_of
from pymc_austerity.setup.compiled_target import places_of, table_of
from pymc_austerity.setup.problem import Problem


class RowSums(NamedTuple):
    """Sums over all rows at a point.

    Attributes
    ----------
    value : float
        Log-likelihood, nats.
    gradient : float array, shape (d,)
    """

    value: float
    gradient: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupedModel:
    """The parts of a model with groups.

    Attributes
    ----------
    problem : Problem
    blocks : Blocks
        Which rows read which entries.
    derivatives : PredictorDerivatives
        Of the rows.
    rows : SharedRows
        Sorted by the levels of the first factor.
    order : int array, shape (N,)
        Numbers of these rows in the user's data.
    terms : tuple of LevelTerms
        Terms of the exact part that depend on the levels of each factor.
    common_exact, untouched_exact : PartialDerivatives
        Of the exact part, with respect to the common entries and to those that no row reads.
    scaled : int array
        Which of the latter are normal given the others, counted among themselves.
    """

    problem: Problem
    blocks: Blocks
    derivatives: PredictorDerivatives
    rows: SharedRows
    order: NDArray[np.intp]
    terms: tuple[LevelTerms, ...]
    common_exact: PartialDerivatives
    untouched_exact: PartialDerivatives
    scaled: NDArray[np.intp]

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors."""
        return self.blocks.factors

    @property
    def touched(self) -> NDArray[np.int64]:
        """Entries that rows read, those of levels first, shape (t,)."""
        levels = [factor.entries.ravel() for factor in self.factors]
        return np.concatenate([*levels, self.blocks.common])

    def _blocks(self) -> Iterator[Block]:
        """Rows in blocks no shorter than a point: sums over a block have one number per entry."""
        n_leaves = len(self.problem.likelihood.leaves)
        for block in blocks_of(self.rows, max(LARGEST_BLOCK, self.problem.start.size)):
            yield block[:n_leaves]

    def row_sums(self, point: NDArray[np.float64]) -> RowSums:
        """Log-likelihood and gradient of all rows."""
        value, gradient = 0.0, np.zeros(point.size)
        for block in self._blocks():
            some, slope = self.derivatives.gradient(point, *block)
            value += float(some)
            gradient += slope
        return RowSums(value, gradient)

    def row_hessian(self, point: NDArray[np.float64]) -> sparse.csr_array:
        """Hessian of all rows."""
        sums: list[sparse.csr_array] = []  # of 1, 2, 4 ... blocks: few additions of large matrices
        for number, block in enumerate(self._blocks(), start=1):
            total = sparse.csr_array(self.derivatives.sparse_hessian(point, *block))
            while number % 2 == 0:
                total, number = total + sums.pop(), number // 2
            sums.append(total)
        return sum(reversed(sums))

    def exact_hessian(self, point: NDArray[np.float64]) -> sparse.csr_array:
        """Hessian of the exact part for entries that rows read, without pairs of two factors."""
        rows, columns, values = [], [], []
        for factor, terms in zip(self.factors, self.terms, strict=True):
            _, hessians = terms.derivatives(point)
            one, two = np.broadcast_arrays(factor.entries[:, :, None], factor.entries[:, None, :])
            rows.append(one.ravel())
            columns.append(two.ravel())
            values.append(hessians.ravel())
        common = self.blocks.common
        if common.size:
            dense = sparse.coo_array(self.common_exact.hessian(point))
            one, two = common[dense.row], dense.col.astype(np.int64)
            is_level = ~np.isin(two, common)
            rows += [one, two[is_level]]
            columns += [two, one[is_level]]
            values += [dense.data, dense.data[is_level]]
        where = (np.concatenate(rows), np.concatenate(columns))
        shape = (point.size, point.size)
        return sparse.csr_array((np.concatenate(values), where), shape=shape)


def levels_of_rows(
    factors: Sequence[Factor], structure: RowStructure, problem: Problem
) -> list[NDArray[np.int32]]:
    """The level of each row, in the user's order, for each factor."""
    graphs = [factor.index for factor in factors]
    read = data_reader(graphs, structure, problem.model)
    found: list[list[NDArray]] = [[] for _ in graphs]
    for block in blocks_of(ArrayRows(problem.likelihood.arrays)):
        values = read(block)
        for levels, graph in zip(found, graphs, strict=True):
            levels.append(np.asarray(values[graph], dtype=np.int32))
    return [np.concatenate(levels) for levels in found]


@dataclass(frozen=True, eq=False)
class KernelOnRows:
    """A kernel, and the stored rows that it reads.

    Attributes
    ----------
    kernel : Kernel
    source : SharedRows
        Addresses are valid as long as the source is open.
    """

    kernel: Kernel
    source: SharedRows

    def __call__(self, proposed: NDArray, current: NDArray) -> ResidualsByAddress:
        """Between two points, float arrays of shape (d,)."""
        kernel, (function, starts, table, places) = self.kernel, self._addresses
        new, old = kernel.ordered(proposed), kernel.ordered(current)
        return ResidualsByAddress(new, old, function, starts, table.ctypes.data, places)

    @cached_property
    def _addresses(self) -> tuple[int, int, NDArray, NDArray]:
        arrays, kernel = self.source.window(0, self.source.n_rows), self.kernel
        return kernel.address, kernel.starts.ctypes.data, table_of(arrays), places_of(arrays)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {"kernel": self.kernel, "source": self.source}
