"""The problem of one step method: a prepared model, and the variables that are moved."""

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    BernoulliRV,
    CategoricalRV,
    CircularTransform,
    LogTransform,
    ancestors,
    discrete_types,
    make_shared_replacements,
    underivable,
)
from pymc_austerity.model import (
    Blocks,
    DensityGradient,
    DensityKernel,
    Derivatives,
    ModelAt,
    RowFreeGradient,
    RowLikelihood,
    RowStructure,
    compile_row_free_derivatives,
    compile_row_free_difference,
    compile_row_free_gradient,
    differences_agree,
    find_blocks,
    find_predictors,
    random_variable_of,
    row_free_difference_agrees,
    variables_that_move_the_support,
)
from pymc_austerity.model.bounds import ScalarFunction, scalar_function
from pymc_austerity.proposals import Block, Layout
from pymc_austerity.setup.model_inputs import raveled
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.setup_progress import collection_paused
from pymc_austerity.time_limit import counted

_log = logging.getLogger("pymc.austerity")

AnyGradient = DensityGradient | RowFreeGradient

_POINTS, _TOLERANCE = 3, 1e-8
"""Points at which gradients are compared, and what may be between them."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A prepared model as a function of the variables of one step method.

    Attributes
    ----------
    prepared : PreparedModel
        The split model and its rows.
    variables : sequence
        Value variables of the step method.
    shared : dict
        Replacements of the other value variables, as from ``make_shared_replacements``.
    start : array, shape (d,)
        The raveled point.
    layout : Layout
        Kinds of its entries.
    compile_kwargs : dict
        Arguments of ``pymc.compile``.
    doubts : list of str
        What was written for the model, gives other numbers, and is not used.
    began : float
        When its set-up began, in counted processor time.
    """

    prepared: PreparedModel
    variables: Sequence
    shared: Mapping
    start: NDArray
    layout: Layout
    compile_kwargs: dict[str, Any]
    doubts: list[str] = field(default_factory=list)
    began: float = field(default_factory=counted)

    @property
    def likelihood(self) -> RowLikelihood:
        """Row-free part and row part of the log-density."""
        return self.prepared.likelihood

    @property
    def model(self) -> pm.Model:
        """The user's model."""
        return self.likelihood.model

    @property
    def parts(self) -> ModelAt:
        """The first argument of those functions of `pymc_austerity.model` that compile or look."""
        return ModelAt(self.likelihood, self.variables, self.shared, self.prepared.point)

    @cached_property
    def touched(self) -> list:
        """Value variables of the model that rows depend on, whichever step method moves them."""
        inputs = set(ancestors([self.likelihood.rows]))
        return [variable for variable in self.likelihood.value_vars if variable in inputs]

    def entries_of(self, variables: Container[Any]) -> NDArray[np.intp]:
        """Entries of a point that belong to some value variables."""
        every = np.arange(self.start.size)
        blocks = zip(self.layout.blocks, self.variables, strict=True)
        own = [every[block.entries] for block, variable in blocks if variable in variables]
        return np.concatenate([every[:0], *own])

    def name_of_entry(self, entry: int) -> str:
        """Name of the variable to which an entry of a point belongs."""
        blocks, size = self.layout.blocks, self.start.size
        (name,) = [b.name for b in blocks if entry in range(*b.entries.indices(size))]
        return name

    @cached_property
    def angles(self) -> NDArray[np.intp]:
        """Entries that are the same after a full turn."""
        return self._transformed_by(CircularTransform)

    @cached_property
    def logarithms(self) -> NDArray[np.intp]:
        """Entries that are logarithms of the user's variables."""
        return self._transformed_by(LogTransform)

    def _transformed_by(self, kind: type) -> NDArray[np.intp]:
        transforms, known = self.model.rvs_to_transforms, self.model.values_to_rvs
        own = [v for v in self.variables if v in known and isinstance(transforms[known[v]], kind)]
        return self.entries_of(own)

    @cached_property
    def moving_support(self) -> list[str]:
        """Names of the variables on which the support of the rows depends."""
        found = variables_that_move_the_support(self.likelihood)
        return [random_variable_of(variable, self.model).name for variable in found]

    @cached_property
    def structure(self) -> RowStructure | str:
        """The linear predictors of which rows are functions, or why there are none."""
        return find_predictors(self.parts)

    def read_as_a_whole(self, reason: str) -> None:
        """Do without linear predictors from now on, for a reason given as a clause."""
        self.__dict__.pop("blocks", None)
        self.__dict__["structure"] = reason

    def agrees(self, differences: Callable[..., NDArray[np.float64]]) -> bool:
        """Whether what was written for the rows gives the numbers of the model."""
        rng = np.random.default_rng(0)
        return differences_agree(differences, self.parts, self.prepared.verified, rng)

    @cached_property
    def scalar_function(self) -> ScalarFunction:
        """Log-likelihood of a row as a function of its predictors, where there are some."""
        structure = self.structure
        assert isinstance(structure, RowStructure)
        placeholders = [leaf.placeholder for leaf in structure.leaves]
        return scalar_function(structure.function, structure.etas, placeholders)

    @cached_property
    def row_free_difference(self) -> Callable[..., Any]:
        """``f(proposed, current)``: that of the row-free part, nats; ready when chains start."""
        function: Callable[..., Any] | str
        function = DensityKernel.of(self.parts, self.likelihood.row_free)
        if isinstance(function, DensityKernel) and self.agrees_row_free(function):
            return function
        function = compile_row_free_difference(self.parts, compile_kwargs=self.compile_kwargs)
        function(self.start, self.start)
        return function

    def agrees_row_free(self, function: Callable[..., float]) -> bool:
        """Whether code that was written for the row-free part gives the numbers of the model."""
        verified, rng = self.prepared.verified, np.random.default_rng(0)
        agrees = row_free_difference_agrees(function, self.parts, verified, rng)
        if not agrees:
            self.doubts.append("the function written for the terms that are evaluated in full")
        return agrees

    @cached_property
    def row_free_gradient(self) -> AnyGradient:
        """The row-free part with its gradient.

        Raises
        ------
        NotImplementedError, NullTypeGradError
            An operation of the model has no derivative.
        """
        written = DensityGradient.of(self.parts, self.likelihood.row_free)
        if isinstance(written, DensityGradient) and self._slopes_agree(written):
            return written
        return compile_row_free_gradient(self.parts, compile_kwargs=self.compile_kwargs)

    def _slopes_agree(self, written: DensityGradient) -> bool:
        """Whether gradients at a few points, and differences of values, are those of the graph."""
        rng, start = np.random.default_rng(0), self.start.astype(np.float64)
        points = [start, *(start + rng.normal(size=(_POINTS - 1, start.size)))]
        own = _values_and_slopes([written(point) for point in points])
        compiled = self.row_free_derivatives.gradient
        expected = _values_and_slopes(
            [compiled(point.astype(self.start.dtype)) for point in points]
        )
        return np.allclose(own, expected, _TOLERANCE, _TOLERANCE, equal_nan=True)

    @cached_property
    def row_free_derivatives(self) -> Derivatives:
        """Gradient and Hessian of the row-free part.

        Raises
        ------
        NotImplementedError, NullTypeGradError
            An operation of the model has no derivative.
        """
        return compile_row_free_derivatives(self.parts, compile_kwargs=self.compile_kwargs)

    @cached_property
    def blocks(self) -> Blocks | None:
        """Which rows read which parameters; None where linear predictors do not determine this."""
        if isinstance(self.structure, str) or any(
            variable.dtype in discrete_types for variable in self.variables
        ):
            return None
        try:
            return find_blocks(self.structure, self.parts, self._row_free_gradient)
        except underivable:
            return None
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
            _log.exception("Parameters are moved together: the search for groups ended in an error")
            return None

    def _row_free_gradient(self, point: NDArray) -> NDArray[np.float64]:
        return self._derivatives_by_level.gradient(point)[1]

    @cached_property
    def _derivatives_by_level(self) -> Derivatives:
        """Derivatives of the row-free part without terms that read all levels together."""
        own = self.likelihood.without_joint_terms
        if own is self.likelihood:
            return self.row_free_derivatives
        at = self.parts._replace(likelihood=own)
        return compile_row_free_derivatives(at, compile_kwargs=self.compile_kwargs)


def _values_and_slopes(found: list) -> NDArray[np.float64]:
    """Gradients, and values up to a constant."""
    values, gradients = zip(*found, strict=True)
    with np.errstate(invalid="ignore"):  # both may be infinite
        return np.concatenate([np.diff(np.ravel(values)), np.ravel(gradients)])


@collection_paused()
def pose(prepared: PreparedModel, variables: Sequence, compile_kwargs: dict[str, Any]) -> Problem:
    """The problem of a step method on some variables; made once for the same variables."""
    model, point = prepared.likelihood.model, prepared.point
    names = tuple(variable.name for variable in variables)
    if names not in prepared.problems:
        prepared.problems[names] = Problem(
            prepared,
            variables,
            make_shared_replacements(point, variables, model),
            raveled(point, variables),
            layout_of(variables, model, point),
            compile_kwargs,
        )
    known: Problem = prepared.problems[names]
    return known


def layout_of(variables: Sequence, model: pm.Model, point: Mapping[str, NDArray]) -> Layout:
    """Kinds of the entries of the raveled variables."""
    kinds = [
        np.full(np.size(point[variable.name]), _n_categories(variable, model, point))
        for variable in variables
    ]
    firsts = np.cumsum([0, *map(len, kinds)])
    blocks = tuple(
        Block(
            variable.name,
            np.shape(point[variable.name]),
            int(first),
            orthonormal=getattr(random_variable_of(variable, model).owner.op, "orthonormal", False),
        )
        for variable, first in zip(variables, firsts[:-1], strict=True)
    )
    return Layout(np.concatenate(kinds).astype(np.int64), blocks)


def _n_categories(variable: Any, model: pm.Model, point: Mapping[str, NDArray]) -> int:
    if variable.dtype not in discrete_types:
        return 0
    random_variable = model.values_to_rvs[variable]
    distribution = random_variable.owner.op
    if isinstance(distribution, BernoulliRV):
        return 2
    if isinstance(distribution, CategoricalRV):
        # the last input of a categorical variable is its vector of probabilities
        (length,) = model.replace_rvs_by_values([random_variable.owner.inputs[-1].shape[-1]])
        evaluate = model.compile_fn(length, inputs=model.value_vars, on_unused_input="ignore")
        return int(evaluate(point))
    return 1
