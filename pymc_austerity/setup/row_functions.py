"""Functions of the rows for set-up and decisions, with linear predictors or without."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    Anchor,
    Differentiable,
    ResidualFunction,
    RowDensity,
)
from pymc_austerity.deciding.sampling import RowFunction
from pymc_austerity.model import (
    Kernel,
    PredictorDerivatives,
    compile_residuals,
    compile_row_derivatives,
    compile_row_differences,
    kernel_of,
    predictor_derivatives,
    row_loops_of,
)
from pymc_austerity.rows import ArrayRows, Block, blocks_of
from pymc_austerity.setup.problem import Problem

__all__ = [
    "ExpandedRows",
    "Residuals",
    "expanded_rows",
    "expansion_agrees",
    "row_differences",
]

_MOST_STORED = 8
"""Predictors of a row beyond which its derivatives at the anchor take more memory than its data:
two numbers for each of them and one for each pair. They are computed when the row is read."""
_MOST_BY_NUMPY = 16
"""Predictors beyond which second derivatives cost more than they save where there is no loop."""

_COMPARED, _SHARE = 200, 1e-3
"""Rows on which an expansion is compared with differences, and what may be between them."""

_BY_KERNEL = "a small loop that was written for this model"


@dataclass(frozen=True, eq=False)
class Residuals:
    """Row differences minus their expansion about an anchor.

    Attributes
    ----------
    function : callable
        ``f(proposed, current, *block)``, nats.
    data : list of arrays, each of shape (n_rows, ...)
        Of the rows; empty where these are in sources.
    compiled_as : str
        What was compiled and why, as the end of a sentence.
    at_anchor : callable or None
        From a block of data to the derivatives of its rows at the anchor.
    is_stored : bool
        Whether these are one more array of a block.
    """

    function: RowFunction
    data: list[NDArray]
    compiled_as: str
    at_anchor: Callable[..., NDArray[np.float64]] | None = None
    is_stored: bool = False

    @cached_property
    def arrays(self) -> list[NDArray]:
        """Contents of all blocks: the data of the rows, and their derivatives at the anchor."""
        if self.stored is None or not self.data:
            return self.data
        constants = np.empty(0)
        done = 0
        for block in blocks_of(ArrayRows(self.data)):
            some = self.stored(*block)
            if not done:
                constants = np.empty((len(self.data[0]), *some.shape[1:]))
            constants[done : done + len(some)] = some
            done += len(some)
        return [*self.data, constants]

    @property
    def stored(self) -> Callable[..., NDArray[np.float64]] | None:
        """From a block of data to the array that is stored beside it, if there is one."""
        return self.at_anchor if self.is_stored else None

    @property
    def block_of(self) -> Callable[[Block], Block]:
        """From the data of some rows to the inputs of the function; does not hold the function."""
        return partial(_with_constants, self.stored)


def _with_constants(at_anchor: Callable[..., NDArray[np.float64]] | None, data: Block) -> Block:
    return data if at_anchor is None else (*data, at_anchor(*data))


@dataclass(frozen=True, eq=False)
class ExpandedRows:
    """Functions of rows that are expanded about an anchor.

    Attributes
    ----------
    derivatives : Derivatives
        Gradients and Hessians of the rows.
    differences : callable
        ``f(proposed, current, *block)``: differences of the rows, nats.
    residuals : callable
        From an anchor to the `Residuals` about it.
    """

    derivatives: Differentiable
    differences: RowFunction
    residuals: Callable[[NDArray[np.float64]], Residuals]

    def density(self, exact: Differentiable, problem: Problem) -> RowDensity:
        """The log-density of all rows together with another one."""
        parts = [(problem.prepared.rows, 1.0)]
        return RowDensity(self.derivatives, exact, self.differences, parts, problem.start.dtype)


def row_differences(problem: Problem) -> tuple[RowFunction, str]:
    """Compile the differences of the rows.

    Returns
    -------
    function : callable
        ``f(proposed, current, *block)``, nats.
    compiled_as : str
        What was compiled and why, as the end of a sentence.
    """
    kernel = _kernel(problem, order=0)
    if isinstance(kernel, Kernel):
        return kernel, _BY_KERNEL
    kwargs = problem.compile_kwargs
    function = compile_row_differences(problem.parts, compile_kwargs=kwargs)
    return function, _by_pytensor(kernel)


def expanded_rows(problem: Problem, order: int) -> ExpandedRows:
    """Derivatives, differences and residuals of the rows.

    Parameters
    ----------
    problem : Problem
        What to sample.
    order : {1, 2}
        Of the expansion.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    kwargs, structure = problem.compile_kwargs, problem.structure
    if isinstance(structure, str):
        derivatives = compile_row_derivatives(problem.parts, compile_kwargs=kwargs)
        return _by_graph(problem, derivatives, order, structure)
    model, n_predictors = problem.model, len(structure.etas)
    loops = row_loops_of(structure)
    if isinstance(loops, str) and n_predictors > _MOST_BY_NUMPY:
        problem.read_as_a_whole(f"it is a function of {n_predictors} linear predictors and {loops}")
        return expanded_rows(problem, order)
    made = None if isinstance(loops, str) else (loops.first, loops.second)
    by_predictors = predictor_derivatives(structure, model, loops=made, compile_kwargs=kwargs)
    if not problem.agrees(by_predictors.differences):
        problem.read_as_a_whole("functions of them give other numbers than the model")
        return expanded_rows(problem, order)
    is_stored = n_predictors <= _MOST_STORED
    plain = expanded = _kernel(problem, order if is_stored else 0)
    if isinstance(plain, Kernel) and not is_stored:
        expanded = _kernel(problem, order, by_row=True)
    if isinstance(plain, str) or isinstance(expanded, str):
        return _by_graph(problem, by_predictors, order, str(expanded))
    return _by_kernel(problem, by_predictors, plain, expanded)


def expansion_agrees(
    expanded: ExpandedRows, residuals: Residuals, anchor: Anchor, problem: Problem
) -> bool:
    """Whether residuals and the sum of what they leave out are the differences of the model.

    Both come from derivatives, which are the only functions of the rows that are not compared with
    the model elsewhere. The points are as far from each other as if there were no other rows.
    """
    rng = np.random.default_rng(0)
    n_rows = problem.likelihood.n_in_model
    chosen = rng.integers(0, n_rows, min(_COMPARED, n_rows))
    block = tuple(array[chosen] for array in problem.likelihood.arrays)
    own = problem.start.dtype  # what PyTensor compiled takes no other
    at, far = anchor.point.astype(own), np.sqrt(n_rows / chosen.size)
    rows = replace(
        anchor,
        gradient=np.asarray(expanded.derivatives.gradient(at, *block)[1]),
        hessian=np.asarray(expanded.derivatives.hessian(at, *block)),
    )
    pair = [(at + far * (anchor.draw(rng) - at)).astype(own) for _ in range(2)]
    with np.errstate(all="ignore"):
        differences = expanded.differences(*pair, *block)
        left = residuals.function(*pair, *residuals.block_of(block))
        expected, found = differences.sum(), rows.expansion(*pair) + left.sum()
        allowed = _SHARE * (np.abs(differences).sum() + np.abs(left).sum())
    return not np.isfinite(expected) or bool(abs(found - expected) <= allowed)


def _by_pytensor(reason: str) -> str:
    return f"the whole graph by PyTensor, because {reason}"


def _by_graph(
    problem: Problem, derivatives: Differentiable, order: int, reason: str
) -> ExpandedRows:
    """Functions that PyTensor compiles."""
    kwargs, dtype = problem.compile_kwargs, problem.start.dtype

    def residuals(anchor: NDArray[np.float64]) -> Residuals:
        function = compile_residuals(problem.parts, order=order, compile_kwargs=kwargs)
        at_anchor = ResidualFunction(function, anchor.astype(dtype))
        return Residuals(at_anchor, _in_memory(problem), _by_pytensor(reason))

    differences = compile_row_differences(problem.parts, compile_kwargs=kwargs)
    return ExpandedRows(derivatives, differences, residuals)


def _by_kernel(
    problem: Problem, derivatives: PredictorDerivatives, plain: Kernel, expanded: Kernel
) -> ExpandedRows:
    """The compiled function of the predictors, with derivatives at the anchor stored or not."""

    def residuals(anchor: NDArray[np.float64]) -> Residuals:
        at_anchor, is_stored = partial(derivatives.anchor_constants, anchor), not expanded.by_row
        function = expanded if is_stored else expanded.at(anchor)
        arrays = _in_memory(problem)
        return Residuals(function, arrays, _BY_KERNEL, at_anchor, is_stored=is_stored)

    return ExpandedRows(derivatives, plain.differences, residuals)


def _in_memory(problem: Problem) -> list[NDArray]:
    """All rows, or none where they are in sources."""
    return [] if problem.prepared.from_sources else problem.likelihood.arrays


def _kernel(problem: Problem, order: int, *, by_row: bool = False) -> Kernel | str:
    """The compiled function of the predictors, or why there is none."""
    structure = problem.structure
    if isinstance(structure, str):
        return structure
    kernel = kernel_of(structure, order, by_row=by_row)
    if isinstance(kernel, Kernel) and not by_row and not problem.agrees(kernel.differences):
        return "the loop written for it gives other numbers than the model"
    return kernel
