"""Terms of the row-free part for each level of a factor, as functions of few linear predictors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    SharedVariable,
    Variable,
    ancestors,
)
from pymc_austerity.model.cut import CannotCut, Known, static_data
from pymc_austerity.model.kernel.kernel import Kernel, kernel_of
from pymc_austerity.model.kernel.row_loops import RowDerivatives, row_derivatives_of
from pymc_austerity.model.predictors.find import find_predictors
from pymc_austerity.model.predictors.structure import (
    Design,
    design_function,
)
from pymc_austerity.model.rewritten import inlined
from pymc_austerity.model.row_likelihood import ModelAt
from pymc_austerity.model.split import cut_terms

_OF_ANOTHER = "the prior of a level reads another level"


class NotByLevelError(ValueError):
    """A term of the row-free part is not a sum over levels; the message names the variables."""


@dataclass(frozen=True, eq=False)
class LevelsAsRows:
    r"""Terms of levels as rows are written: :math:`f_g(\eta_g)`, with :math:`\eta_g = A_g \theta`.

    Attributes
    ----------
    block : tuple of arrays
        Data of the levels.
    designs : sequence of Design
        Of the predictors.
    function : RowDerivatives
        Terms with their derivatives, from those by the r predictors that read entries of levels.
    multipliers : float array, shape (r, G, q)
        Multipliers of the entries of each level in these.
    given : int array
        Other entries that the terms read.
    kernel : Kernel or str
        Differences of the terms as a compiled loop, or why there is none.
    """

    block: tuple[NDArray, ...]
    designs: Sequence[Design]
    function: RowDerivatives
    multipliers: NDArray[np.float64]
    given: NDArray[np.int64]
    kernel: Kernel | str

    def terms(self, point: NDArray) -> NDArray[np.float64]:
        """From a raveled point to the terms, shape (G,), nats."""
        return self._at(point)[0]

    def derivatives(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradients, shape (G, q), and Hessians, shape (G, q, q), by the entries of each level."""
        _, gradients, hessians = self._at(point)
        return gradients, hessians

    @property
    def address(self) -> int:
        """Of all three in compiled code, a function of three addresses.

        Those of a point, of what it fills in (terms, gradients and Hessians, one after the other),
        and of `table`.
        """
        return self.function.address

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """Shapes and addresses of the arrays that the function at `address` reads."""
        numbers = [*self.multipliers.shape[1:]]
        numbers += [array.ctypes.data for array in (*self._predictors, self.multipliers)]
        for array in self.block:
            numbers += [array.ctypes.data, *array.shape]
        return np.array(numbers, dtype=np.int64)

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the sum of the terms between two points, nats."""
        assert isinstance(self.kernel, Kernel)
        return float(self.kernel(proposed, current, *self.block).sum())

    def _at(self, point: NDArray) -> tuple[NDArray[np.float64], ...]:
        _, n_levels, q = self.multipliers.shape
        out = np.empty(n_levels * (1 + q + q * q))
        exact = np.ascontiguousarray(point, dtype=np.float64)
        self.function.on_arrays(exact, out, self.table)
        gradients, hessians = out[n_levels : n_levels * (1 + q)], out[n_levels * (1 + q) :]
        return out[:n_levels], gradients.reshape(-1, q), hessians.reshape(-1, q, q)

    @cached_property
    def _predictors(self) -> tuple[NDArray, ...]:
        """Terms of all predictors, the k of all levels one after the other.

        Where the terms of each begin, shape (k G + 1,); the entries and coefficients of all terms;
        and offsets, shape (k G,).
        """
        counts, entries, coefficients, offsets = [np.zeros(1)], [], [], []
        for design in self.designs:
            own, factors = [np.empty((design.n_rows, 0), int)], [np.empty((design.n_rows, 0))]
            for term in design.terms:
                own.append(np.broadcast_to(term.entries, term.data.shape))
                factors.append(term.data)
            entries.append(np.hstack(own))
            coefficients.append(np.hstack(factors))
            counts.append(np.full(design.n_rows, entries[-1].shape[1]))
            offset = 0.0 if design.offset is None else design.offset
            offsets.append(np.broadcast_to(offset, design.n_rows))
        return (
            np.cumsum(np.concatenate(counts), dtype=np.int64),
            np.concatenate([array.ravel() for array in entries]).astype(np.int64),
            np.concatenate([array.ravel() for array in coefficients]).astype(np.float64),
            np.concatenate(offsets).astype(np.float64),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {name: value for name, value in self.__dict__.items() if name != "table"}


def levels_as_rows(
    at: ModelAt, terms: Sequence[Variable], axes: Sequence[int], entries: NDArray[np.int64]
) -> LevelsAsRows | None:
    """Cut terms of the row-free part to levels, as the likelihood is cut to rows.

    Parameters
    ----------
    at : ModelAt
    terms : sequence of variables
        Terms of the row-free part.
    axes : sequence of int
        The axis of the levels in each.
    entries : int array, shape (G, q)
        Positions of the entries of each level.

    Returns
    -------
    LevelsAsRows or None
        None where they cannot be cut, are functions of too many predictors, or read data that the
        user may replace.

    Raises
    ------
    NotByLevelError
        The terms of a level read another level.
    """
    likelihood = at.likelihood
    if _may_change(terms, likelihood.model):
        return None
    known = Known(likelihood.value_vars, at.point)
    plain = known.with_known_shapes(inlined(static_data(inlined(list(terms)))))
    known.learn_shapes(plain)
    known.learn_values(plain)
    try:
        rows, cut = cut_terms(plain, axes, known, len(entries))
    except CannotCut:
        return None
    leaves = tuple(cut.leaves)
    own = replace(likelihood, rows=rows, leaves=leaves, n_rows=len(entries))
    structure = find_predictors(at._replace(likelihood=own))
    if isinstance(structure, str):
        return None
    block = tuple(np.ascontiguousarray(leaf.array) for leaf in leaves)
    designs = design_function(structure, likelihood.model)(block)
    multipliers = _multipliers(designs, entries, structure.size)
    (read,) = np.nonzero(multipliers.any(axis=(1, 2)))
    function = row_derivatives_of(structure, read.tolist())
    if isinstance(function, str):
        return None
    return LevelsAsRows(
        block,
        designs,
        function,
        np.ascontiguousarray(multipliers[read]),
        np.setdiff1d(_all_entries(designs), entries),
        kernel_of(structure, 0),
    )


def _may_change(terms: Sequence[Variable], model: pm.Model) -> bool:
    """Whether terms read data that the user may replace; lengths of dimensions stay."""
    lengths = set(model.dim_lengths.values())
    return any(isinstance(v, SharedVariable) and v not in lengths for v in ancestors(terms))


def _multipliers(
    designs: Sequence[Design], entries: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """Multipliers of the entries of a level in each predictor."""
    n_levels, q = entries.shape
    found = np.zeros((len(designs), n_levels, q))
    place = np.full(size, -1)
    place[entries.ravel()] = np.arange(entries.size)
    for number, design in enumerate(designs):
        for term in design.terms:
            places = np.broadcast_to(place[term.entries], term.data.shape)
            levels, columns = np.nonzero(places >= 0)
            own = places[levels, columns]
            if (own // q != levels).any():
                raise NotByLevelError(_OF_ANOTHER)
            np.add.at(found[number], (levels, own % q), term.data[levels, columns])
    return found


def _all_entries(designs: Sequence[Design]) -> NDArray[np.int64]:
    every = [np.ravel(term.entries) for design in designs for term in design.terms]
    return np.unique(np.concatenate(every)).astype(np.int64)
