"""Compiled differences of rows between two points, by one small loop."""

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, ClassVar

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.kernel import rules  # noqa: F401 (importing registers the rules)
from pymc_austerity.model.kernel.row_formula import RowFormula, row_formula_of
from pymc_austerity.model.kernel.scalar import NoKernelError
from pymc_austerity.model.kernel.source import source_of
from pymc_austerity.model.kernel.store import Generated, module_of
from pymc_austerity.model.kernel.unrolled import prepared
from pymc_austerity.model.predictors.structure import RowStructure

__all__ = ["Kernel", "kernel_of", "written_kernel"]


@dataclass(frozen=True, eq=False)
class Kernel(Generated):
    """Row differences, or residuals of their expansion, as a compiled function.

    The function at `address` takes seven integers and evaluates rows by their positions: addresses
    of the two points, entries in the order of the terms, and of `starts`; of the positions, uint64;
    their number; addresses of a table and of the output, float64. In the table, int64, each array
    of a block has its address and its shape.

    Attributes
    ----------
    order : {0, 1, 2, 3}
        Order of the expansion about the anchor; 0 for plain differences.
    n_predictors : int
        Linear predictors of a row, k.
    types : tuple of (str, int)
        Dtype and ndim of the arrays of a block.
    starts : unsigned int array
        Where the entries begin that each term of the predictors reads.
    entries : int array or None
        Entries of the point to be put in the order of the terms; None where the terms read
        contiguous entries of the point itself.
    """

    by_address: ClassVar = ("differences_at", 7, numba.void)
    order: int
    n_predictors: int
    types: tuple[tuple[str, int], ...]
    starts: NDArray[np.uint64]
    entries: NDArray[np.int64] | None

    def __call__(self, proposed: NDArray, current: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Differences of the log-densities of rows, float64 array, shape (m,), nats.

        Parameters
        ----------
        proposed, current : float array, shape (d,)
        *block : array
            One for each leaf, rows on axis 0, C-contiguous. For residuals one more: constants at
            the anchor, float64, shape (m, `n_constants`): the k predictors, the k first
            derivatives, the upper triangle of the second derivatives by rows, and for order 3
            the third derivatives by predictors a <= b <= c, the last one fastest.
        """
        n_rows = len(block[0])
        rows, out = np.arange(n_rows, dtype=np.uint64), np.empty(n_rows)
        new, old = self.ordered(proposed), self.ordered(current)
        self._function(new, old, self.starts, rows, out, *block)
        return out

    @property
    def n_constants(self) -> int:
        """Numbers stored for each row: 2k + k(k+1)/2, k(k+1)(k+2)/6 more for order 3; or none."""
        k = self.n_predictors
        if self.order == 0:
            return 0
        return 2 * k + comb(k + 1, 2) + (comb(k + 2, 3) if self.order > 2 else 0)

    def differences(
        self, proposed: NDArray, current: NDArray, *block: NDArray
    ) -> NDArray[np.float64]:
        """Plain differences of rows, nats, shape (m,), whatever the order; without constants."""
        no_expansion = [np.zeros((len(block[0]), self.n_constants))] * (self.order > 0)
        return self(proposed, current, *block, *no_expansion)

    def ordered(self, point: NDArray) -> NDArray[np.float64]:
        """Entries of a point as the compiled function takes them."""
        point = np.ascontiguousarray(point, dtype=np.float64)
        return point if self.entries is None else point.take(self.entries)

    def compile(self) -> None:
        """Compile now, or read what an earlier process compiled."""
        _ = self._function

    @cached_property
    def _function(self) -> Any:
        function = module_of(self.source).differences
        points, positions, out = [("float64", 1)] * 2, [("uint64", 1)] * 2, ("float64", 1)
        types = [*points, *positions, out, *self.types]
        types += [("float64", 2)] * (self.order > 0)
        function.compile(
            tuple(numba.types.Array(numba.from_dtype(np.dtype(t)), n, "C") for t, n in types)
        )
        return function


def kernel_of(structure: RowStructure, order: int, *, check_bounds: bool = True) -> Kernel | str:
    """Write and compile the kernel of rows that are functions of linear predictors.

    Parameters
    ----------
    structure : RowStructure
        Predictors and the function above them.
    order : {0, 1, 2, 3}
        Plain differences, or residuals of an expansion of that order.
    check_bounds : bool
        Whether a failed check of parameters gives -inf; otherwise checks are left out. See
        ``pymc.Model``.

    Returns
    -------
    Kernel or str
        Or the reason why there is none.
    """
    kernel = written_kernel(structure, order, check_bounds=check_bounds)
    if isinstance(kernel, Kernel):
        kernel.compile()
    return kernel


def written_kernel(
    structure: RowStructure, order: int, *, check_bounds: bool = True
) -> Kernel | str:
    """The same, not yet compiled."""
    try:
        layout = row_formula_of(structure, prepared(structure.function, check_bounds))
        source = source_of(layout, _types(structure), order)
    except NoKernelError as refusal:
        return refusal.reason
    k = len(structure.etas)
    return Kernel(source, order, k, _types(structure), *_positions(layout))


def _types(structure: RowStructure) -> tuple[tuple[str, int], ...]:
    return tuple((str(leaf.array.dtype), leaf.array.ndim) for leaf in structure.leaves)


def _positions(layout: RowFormula) -> tuple[NDArray[np.uint64], NDArray[np.int64] | None]:
    """Where terms begin, and the entries of the point in the order of the terms if it differs."""
    terms = [term.entries for line in layout.lines for term in line.terms]
    if all(np.array_equal(t, np.arange(t[0], t[0] + len(t))) for t in terms):
        return np.array([t[0] for t in terms], dtype=np.uint64), None
    starts = np.cumsum([0, *map(len, terms[:-1])])
    return starts.astype(np.uint64), np.concatenate(terms).astype(np.int64)
