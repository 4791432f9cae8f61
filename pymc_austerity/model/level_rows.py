"""What the exact part says of each level of a factor, as a function of a few linear predictors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    SharedVariable,
    Variable,
    ancestors,
    underivable,
)
from pymc_austerity.model.cut import CannotCut, Known, static_data
from pymc_austerity.model.inline import inlined
from pymc_austerity.model.kernel import Kernel, RowDerivatives, kernel_of, row_derivatives_of
from pymc_austerity.model.level_predictors import LevelPredictors
from pymc_austerity.model.predictors import (
    Design,
    GatheredRows,
    RowStructure,
    design_function,
    find_predictors,
    predictor_function,
)
from pymc_austerity.model.row_likelihood import RowLikelihood
from pymc_austerity.model.split import cut_terms

__all__ = ["LevelsAsRows", "NotByLevelError", "levels_as_rows"]

_OF_ANOTHER = "the prior of a level reads another level"


class NotByLevelError(ValueError):
    """A term of the exact part is not a sum over levels; the message names the variables."""


@dataclass(frozen=True, eq=False)
class LevelsAsRows:
    r"""Terms of levels as rows are written: :math:`f_g(\eta_g)`, with :math:`\eta_g = A_g \theta`.

    Attributes
    ----------
    block : tuple of arrays
        Data of the levels.
    predictors : LevelPredictors
    function : callable
        From all predictors, shape (k, G), and the block to the terms, their first derivatives and
        the upper triangle of the second ones, by the r predictors that read entries of levels.
    multipliers : float array, shape (r, G, q)
        By what these multiply the entries of each level.
    given : int array
        Other entries that the terms read.
    kernel : Kernel or str
        Differences of the terms as a compiled loop, or why there is none.
    """

    block: tuple[NDArray, ...]
    predictors: LevelPredictors
    function: Callable[..., NDArray[np.float64]]
    multipliers: NDArray[np.float64]
    given: NDArray[np.int64]
    kernel: Kernel | str

    def terms(self, point: NDArray) -> NDArray[np.float64]:
        """From a raveled point to the terms, shape (G,), nats."""
        return self._at(point)[0]

    def derivatives(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradients, shape (G, q), and Hessians, shape (G, q, q), by the entries of each level."""
        _, n_levels, q = self.multipliers.shape
        gradients, hessians = np.empty((n_levels, q)), np.empty((n_levels, q, q))
        _fill_derivatives(self._at(point), self.multipliers, gradients, hessians)
        return gradients, hessians

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the sum of the terms between two points, nats."""
        assert isinstance(self.kernel, Kernel)
        return float(self.kernel(proposed, current, *self.block).sum())

    def _at(self, point: NDArray) -> NDArray[np.float64]:
        exact = point.astype(np.float64, copy=False)
        return self.function(self.predictors(exact), *self.block)


@numba.njit(cache=True)
def _fill_derivatives(
    found: NDArray[np.float64],
    multipliers: NDArray[np.float64],
    gradients: NDArray[np.float64],
    hessians: NDArray[np.float64],
) -> None:
    """From derivatives by the predictors of a level to those by its entries."""
    r, n_levels, q = multipliers.shape
    gradients[:], hessians[:] = 0.0, 0.0
    pair = r + 1
    for a in range(r):
        for g in range(n_levels):
            for i in range(q):
                gradients[g, i] += found[1 + a, g] * multipliers[a, g, i]
        for b in range(a, r):
            for g in range(n_levels):
                for i in range(q):
                    for j in range(q):
                        product = multipliers[a, g, i] * multipliers[b, g, j]
                        if b > a:
                            product += multipliers[b, g, i] * multipliers[a, g, j]
                        hessians[g, i, j] += found[pair, g] * product
            pair += 1


def levels_as_rows(
    likelihood: RowLikelihood,
    terms: Sequence[Variable],
    axes: Sequence[int],
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    entries: NDArray[np.int64],
) -> LevelsAsRows | None:
    """Cut terms of the exact part to levels, as the likelihood is cut to rows.

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.
    terms : sequence of variables
        Terms of the exact part.
    axes : sequence of int
        The axis of the levels in each.
    variables : sequence of variables
        Value variables, in the order of the raveled vector.
    point : dict of str to array
        Their values.
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
    if _may_change(terms, likelihood.model):
        return None
    known = Known(likelihood.value_vars, point)
    plain = known.with_known_shapes(inlined(static_data(inlined(list(terms)))))
    known.learn_shapes(plain)
    known.learn_values(plain)
    try:
        rows, cut = cut_terms(plain, axes, known, len(entries))
    except CannotCut:
        return None
    leaves = tuple(cut.leaves)
    own = replace(likelihood, rows=rows, leaves=leaves, n_rows=len(entries))
    structure = find_predictors(own, variables, {}, point)
    if isinstance(structure, str):
        return None
    block = tuple(leaf.array for leaf in leaves)
    designs = design_function(structure, likelihood.model)(block)
    multipliers = _multipliers(designs, entries, structure.size)
    (read,) = np.nonzero(multipliers.any(axis=(1, 2)))
    try:
        function = _function_of(structure, likelihood.model, read.tolist())
    except underivable:
        return None
    return LevelsAsRows(
        block,
        LevelPredictors.of(designs),
        function,
        multipliers[read],
        np.setdiff1d(_all_entries(designs), entries),
        kernel_of(structure, 0, check_bounds=likelihood.model.check_bounds),
    )


def _may_change(terms: Sequence[Variable], model: pm.Model) -> bool:
    """Whether terms read data that the user may replace; lengths of dimensions stay."""
    lengths = set(model.dim_lengths.values())
    return any(isinstance(v, SharedVariable) and v not in lengths for v in ancestors(terms))


@dataclass(frozen=True)
class _Stacked:
    """A function that returns a list, with its predictors and its results as one array each."""

    function: Callable[..., list]

    def __call__(self, etas: NDArray[np.float64], *block: NDArray) -> NDArray[np.float64]:
        return np.stack(self.function(*etas, *block))


def _function_of(
    structure: RowStructure, model: pm.Model, chosen: list[int]
) -> Callable[..., NDArray[np.float64]]:
    """As a compiled loop where there is one: it is called in every sweep."""
    written = row_derivatives_of(structure, chosen, check_bounds=model.check_bounds)
    if isinstance(written, RowDerivatives):
        return written
    return _Stacked(predictor_function(structure, model, chosen))


def _multipliers(
    designs: Sequence[Design], entries: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """By what each predictor multiplies the entries of a level."""
    n_levels, q = entries.shape
    found = np.zeros((len(designs), n_levels, q))
    place = np.full(size, -1)
    place[entries.ravel()] = np.arange(entries.size)
    levels = np.arange(n_levels)
    for number, design in enumerate(designs):
        for term in design.terms:
            if isinstance(term, GatheredRows):
                places = place[term.entries]
                read = places >= 0
                if (places[read] // q != levels[read]).any():
                    raise NotByLevelError(_OF_ANOTHER)
                found[number, levels[read], places[read] % q] += term.coefficient[read]
            elif np.isin(term.entries, entries).any():
                raise NotByLevelError(_OF_ANOTHER)
    return found


def _all_entries(designs: Sequence[Design]) -> NDArray[np.int64]:
    every = [np.ravel(term.entries) for design in designs for term in design.terms]
    return np.unique(np.concatenate(every)).astype(np.int64)
