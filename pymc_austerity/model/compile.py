"""Compiled functions of the exact part, of rows, and of their gradients."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Variable,
    clone_replace,
    grad,
    jit_function,
    join_nonshared_inputs,
    stabilized,
)
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.kernel.addresses import pointer
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = [
    "ExactGradient",
    "compile_exact_difference",
    "compile_exact_gradient",
    "compile_gradient",
    "compile_row_differences",
]


def compile_row_differences(
    row_likelihood: RowLikelihood,
    vars: Sequence[Variable],
    shared: Mapping[Variable, Variable],
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> Callable[..., NDArray]:
    """Compile the differences of the row part between two points.

    Differences are taken in the graph, in the precision of the model, and only then turned into
    float64: in float32, log-densities that were rounded one by one would cancel.

    Parameters
    ----------
    row_likelihood : RowLikelihood
        The split log-density.
    vars : sequence of variables
        Value variables of the step, raveled and joined in this order.
    shared : dict of variable to shared variable
        What stands for the other value variables, as made by
        ``pymc.pytensorf.make_shared_replacements``.
    point : dict of str to array
        Values of the value variables, for their shapes.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``. The mode is NUMBA unless it says otherwise.

    Returns
    -------
    callable
        ``f(proposed, current, *leaf_rows)``: differences of the log-likelihoods of the rows given
        between two raveled points of shape (d,), float64 array, shape (m,), nats. It trusts its
        inputs: arrays of the right dtype, nothing else. A failed check of parameters gives -inf,
        or is left out if the model has ``check_bounds=False``.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import compile_row_differences, split_log_density
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1.0, observed=np.arange(10.0))
    >>> differences = compile_row_differences(
    ...     split_log_density(model), model.value_vars, {}, model.initial_point(),
    ...     compile_kwargs={"mode": "FAST_COMPILE"},
    ... )
    >>> differences(np.array([1.0]), np.array([0.0]), np.array([0.0, 2.0]))
    array([-0.5,  1.5])
    """
    points, difference = _difference(row_likelihood.rows, vars, shared, point)
    inputs = [*points, *[leaf.placeholder for leaf in row_likelihood.leaves]]
    return compiled(row_likelihood.model, inputs, difference, compile_kwargs)


def compile_exact_difference(
    row_likelihood: RowLikelihood,
    vars: Sequence[Variable],
    shared: Mapping[Variable, Variable],
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> Callable[..., NDArray]:
    """Compile the difference of the exact part between two points.

    Parameters
    ----------
    row_likelihood, vars, shared, point, compile_kwargs
        As in `compile_row_differences`.

    Returns
    -------
    callable
        ``f(proposed, current)``: float64 array, 0-d, nats.
    """
    points, difference = _difference(row_likelihood.exact, vars, shared, point)
    return compiled(row_likelihood.model, points, difference, compile_kwargs)


def _difference(
    graph: Variable,
    variables: Sequence[Variable],
    shared: Mapping[Variable, Variable],
    point: Mapping[str, NDArray],
) -> tuple[list[Variable], Variable]:
    """Raveled points, the proposed one first, and the difference of a graph between them."""
    (old,), current = join_nonshared_inputs(dict(point), [graph], list(variables), dict(shared))
    proposed = current.type("proposed")
    (new,) = clone_replace([old], {current: proposed}, rebuild_strict=False)
    return [proposed, current], (new - old).astype("float64")


def compile_gradient(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    order: int = 0,
    compile_kwargs: dict[str, Any] | None = None,
) -> Callable[..., NDArray]:
    r"""Compile the gradient of the exact part and of some rows, minus its expansion on request.

    .. math::
        w_e \nabla \log \rho(\theta) + w_r \sum_{i \in \text{block}}
        [\nabla \log p(x_i | \theta) - g_i - H_i (\theta - \theta^*)]

    where :math:`g_i, H_i` are gradient and Hessian of the row at the anchor :math:`\theta^*`;
    neither term is there for order 0, and only the first one for order 1.

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.
    variables, shared, point, compile_kwargs
        As in `compile_row_differences`.
    order : {0, 1, 2}
        Order of the expansion of the log-density that is subtracted.

    Returns
    -------
    callable
        ``f(theta, anchor, row_weight, exact_weight, *block)``: float64 array, shape (d,), nats per
        unit of the unconstrained variables. Weights are 0-d arrays of the points' type.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    (rows, exact), theta = join_nonshared_inputs(
        dict(point), [likelihood.rows, likelihood.exact], list(variables), dict(shared)
    )
    anchor = theta.type("anchor")
    row_weight, exact_weight = theta.sum().type("row_weight"), theta.sum().type("exact_weight")
    of_rows = _residual(stabilized(rows.sum()), theta, anchor, order)
    of_exact = grad(stabilized(exact), theta, disconnected_inputs="ignore")
    gradient = row_weight * of_rows + exact_weight * of_exact
    placeholders = [leaf.placeholder for leaf in likelihood.leaves]
    inputs = [theta, anchor, row_weight, exact_weight, *placeholders]
    return compiled(likelihood.model, inputs, gradient.astype("float64"), compile_kwargs)


def _residual(value: Any, theta: Any, anchor: Any, order: int) -> Any:
    """Gradient of a graph, minus its Taylor expansion about the anchor of one order lower."""
    gradient = grad(value, theta, disconnected_inputs="ignore")
    if order == 0:
        return gradient
    direction = theta.type("direction")
    expansion = gradient
    if order == 2:
        along = (gradient * direction).sum()
        expansion = gradient + grad(along, theta, disconnected_inputs="ignore")
    # theta in the direction must not be replaced by the anchor: two steps
    (there,) = clone_replace([expansion], {theta: anchor}, rebuild_strict=False)
    (there,) = clone_replace([there], {direction: theta - anchor}, rebuild_strict=False)
    return gradient - there


@dataclass(frozen=True, eq=False)
class ExactGradient:
    """The exact part and its gradient.

    Attributes
    ----------
    function : callable
        ``f(point)``, in double precision: the exact part, 0-d, nats, and its gradient, shape (d,).
    size : int
        d.
    """

    function: Callable[..., Any]
    size: int

    def __call__(self, point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The exact part, nats, and its gradient, at a point of shape (d,)."""
        value, gradient = self.function(point)
        return float(value), gradient

    @cached_property
    def address(self) -> int | None:
        """Of a function from the addresses of a point and of a gradient, which it writes.

        It returns the exact part. None where numba did not compile it.
        """
        return None if self._by_address is None else int(self._by_address.address)

    @cached_property
    def _by_address(self) -> Any:
        inner, shape = jit_function(self.function), (self.size,)
        if inner is None:
            return None

        def exact_at(point: int, gradient: int) -> Any:
            value, slope = inner(numba.carray(pointer(point), shape, np.float64))
            numba.carray(pointer(gradient), shape, np.float64)[:] = slope
            return value[()]

        return numba.cfunc(numba.float64(numba.intp, numba.intp))(exact_at)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the address."""
        return {"function": self.function, "size": self.size}


def compile_exact_gradient(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> ExactGradient:
    """Compile the exact part and its gradient.

    Parameters
    ----------
    likelihood, variables, shared, point, compile_kwargs
        As in `compile_row_differences`.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    (exact,), theta = join_nonshared_inputs(
        dict(point), [likelihood.exact], list(variables), dict(shared)
    )
    value = stabilized(exact)
    gradient = grad(value, theta, disconnected_inputs="ignore")
    size = sum(np.size(point[variable.name]) for variable in variables)
    x = pt.tensor("x", dtype="float64", shape=(size,))
    outputs = clone_replace([value, gradient], {theta: x.astype(theta.dtype)}, rebuild_strict=False)
    outputs = [output.astype("float64") for output in outputs]
    return ExactGradient(compiled(likelihood.model, [x], outputs, compile_kwargs), size)
