"""A model with groups: its blocks, its rows by level, and sums over all rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity.levels import RowFreeTerms
from pymc_austerity.model import (
    Blocks,
    DensityKernel,
    Factor,
    Kernel,
    LevelTerms,
    OneAtATime,
    PartialDerivatives,
    PredictorDerivatives,
    data_reader,
)
from pymc_austerity.rows import LARGEST_BLOCK, Block, SharedRows, Store, StoredRows, blocks_of
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.source_rows import Labeled, SourceRows


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
    rows : SharedRows or StoredRows
        Sorted by the levels of the first factor.
    terms : tuple of LevelTerms
        Terms of the row-free part that depend on the levels of each factor.
    common_row_free, untouched_row_free : PartialDerivatives
        Of the row-free part, with respect to the common entries and to those that no row reads.
    scaled : int array
        Which of the latter are normal given the others, counted among themselves.
    """

    problem: Problem
    blocks: Blocks
    derivatives: PredictorDerivatives
    rows: Store
    terms: tuple[LevelTerms, ...]
    common_row_free: PartialDerivatives
    untouched_row_free: PartialDerivatives
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

    def blocks_of_rows(self) -> Iterator[Block]:
        """Rows in blocks no shorter than a point: sums over a block have one number per entry."""
        n_leaves = len(self.problem.likelihood.leaves)
        for block in blocks_of(self.rows, max(LARGEST_BLOCK, self.problem.start.size)):
            yield block[:n_leaves]

    def row_sums(self, point: NDArray[np.float64]) -> RowSums:
        """Log-likelihood and gradient of all rows."""
        value, gradient = 0.0, np.zeros(point.size)
        for block in self.blocks_of_rows():
            some, slope = self.derivatives.gradient(point, *block)
            value += float(some)
            gradient += slope
        return RowSums(value, gradient)

    def row_hessian(self, point: NDArray[np.float64]) -> sparse.csr_array:
        """Hessian of all rows."""
        sums: list[sparse.csr_array] = []  # of 1, 2, 4 ... blocks: few additions of large matrices
        for number, block in enumerate(self.blocks_of_rows(), start=1):
            total = sparse.csr_array(self.derivatives.sparse_hessian(point, *block))
            while number % 2 == 0:
                total, number = total + sums.pop(), number // 2
            sums.append(total)
        return sum(reversed(sums))

    def row_free_hessian(self, point: NDArray[np.float64]) -> sparse.csr_array:
        """Hessian of the row-free part for entries that rows read, without pairs of two factors."""
        rows, columns, values = [], [], []
        for factor, terms in zip(self.factors, self.terms, strict=True):
            _, hessians = terms.derivatives(point)
            one, two = np.broadcast_arrays(factor.entries[:, :, None], factor.entries[:, None, :])
            rows.append(one.ravel())
            columns.append(two.ravel())
            values.append(hessians.ravel())
        common = self.blocks.common
        if common.size:
            dense = sparse.coo_array(self.common_row_free.hessian(point))
            one, two = common[dense.row], dense.col.astype(np.int64)
            is_level = ~np.isin(two, common)
            rows += [one, two[is_level]]
            columns += [two, one[is_level]]
            values += [dense.data, dense.data[is_level]]
        where = (np.concatenate(rows), np.concatenate(columns))
        shape = (point.size, point.size)
        return sparse.csr_array((np.concatenate(values), where), shape=shape)


def stored_by_level(problem: Problem, factors: Sequence[Factor]) -> tuple[Store, SharedRows, Store]:
    """Store all rows, from memory or from sources, by the levels of the first of some factors.

    Returns
    -------
    rows : SharedRows or StoredRows
        Their data.
    levels : SharedRows
        The level of each row for each factor.
    numbers : SharedRows or StoredRows
        Numbers of the rows in the user's data.
    """
    structure, rows = problem.structure, problem.prepared.rows
    assert not isinstance(structure, str)
    graphs = [factor.index for factor in factors]
    read = data_reader(graphs, structure, problem.model)

    def levels_of(block: Block) -> list[NDArray[np.int32]]:
        values = read(block)
        return [np.asarray(values[graph], dtype=np.int32) for graph in graphs]

    if isinstance(rows, SourceRows):
        source = _from_sources(rows, levels_of, len(factors[0].entries), problem.prepared.rng)
        own_levels = source.split(source.n_arrays - len(factors) - 1)
        numbers = own_levels.split(len(factors))
        return source, SharedRows.of(own_levels), numbers
    found = zip(*map(levels_of, blocks_of(rows)), strict=True)
    levels = [np.concatenate(own) for own in found]
    order = np.argsort(levels[0], kind="stable")
    data, numbers_of_all = problem.likelihood.arrays, [np.arange(order.size)]
    return SharedRows(data, order), SharedRows(levels, order), SharedRows(numbers_of_all, order)


def _from_sources(
    rows: SourceRows,
    levels_of: Callable[[Block], list[NDArray[np.int32]]],
    n_levels: int,
    rng: np.random.Generator,
) -> StoredRows:
    assert rows.sample is not None
    some = levels_of(rows.sample.window(0, rows.sample.n_rows))[0]
    one_at_a_time = OneAtATime(levels_of)

    def labeled(first: int, block: Block) -> Labeled:
        levels = one_at_a_time(block)
        numbers = rows.numbers(first, levels[0].size)
        return levels[0].astype(np.int64), (*block, *levels, numbers)

    shares = np.bincount(some, minlength=n_levels) / some.size
    return rows.stored(rows.mapped_with_numbers(labeled, here=True), shares, rng)[0]


def row_free_difference_by_levels(
    problem: Problem,
    terms: Sequence[LevelTerms],
    means: Sequence[tuple[NDArray[np.int64], int]] = (),
) -> Callable[..., Any]:
    """Like that of a `Problem`, with little to compile where many terms are sums over levels.

    Parameters
    ----------
    problem : Problem
    terms : sequence of LevelTerms
        Terms of each factor.
    means : sequence of (int array, int)
        Levels that represent effects that sum to zero, and the entry that absorbs their mean.
    """
    likelihood = problem.likelihood
    levels = (t.as_rows for t in terms if t.as_rows is not None)
    loops = tuple((x.kernel, x.block) for x in levels if isinstance(x.kernel, Kernel))
    sources = [source for t in terms for source in t.sources]
    if len(loops) < len(terms) or len(set(sources)) < len(sources):
        return problem.row_free_difference
    of_sums, own = dict(likelihood.joint_terms), set(sources)
    every = enumerate(likelihood.row_free_terms)
    others = [of_sums.get(k, term).sum() for k, term in every if term not in own]
    rest = None
    if others:
        found = DensityKernel.of(problem.parts, sum(others))
        if isinstance(found, str):
            return problem.row_free_difference
        rest = found
    function = RowFreeTerms(loops, rest, tuple(means))
    return function if problem.agrees_row_free(function) else problem.row_free_difference
