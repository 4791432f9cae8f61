"""Taylor terms of the row log-likelihoods, as compiled functions on any rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pytensor.tensor import matrix

from pymc_austerity._pymc import (
    Blockwise,
    clone_replace,
    grad,
    join_nonshared_inputs,
    pushforward,
    stabilized,
    toposort,
    vectorize_graph,
)
from pymc_austerity.model.compiling import OneAtATime, compiled
from pymc_austerity.model.interpret import interpreted
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = [
    "Derivatives",
    "compile_exact_derivatives",
    "compile_residuals",
    "compile_row_derivatives",
]

_ENTRIES = 32_768
"""Rows times dimensions of a Hessian at once: intermediate results stay in the cache."""


class Derivatives(NamedTuple):
    """Derivatives of a part of the log-density, for the passes over all rows that set-up takes.

    Attributes
    ----------
    gradient : callable
        ``f(point, *block)``: the log-density in nats, float64, and its gradient, shape ``(d,)``.
        Of rows, the sums over the block.
    hessian : callable
        ``f(point, *block)``: its Hessian, float64 array, shape ``(d, d)``.
    """

    gradient: Callable[..., Sequence[NDArray]]
    hessian: Callable[..., NDArray]


def compile_row_derivatives(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> Derivatives:
    """Compile gradient and Hessian of the row part.

    Only the gradient is worth the seconds that it takes to compile; NumPy evaluates the Hessian,
    where it can do so fast.

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.
    variables, shared, point, compile_kwargs
        As in `compile_row_differences`.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    (rows,), theta = join_nonshared_inputs(point, [likelihood.rows], variables, shared)
    inputs = [theta, *(leaf.placeholder for leaf in likelihood.leaves)]
    model = likelihood.model
    first, second = _derivatives(rows.sum(), theta, _size(variables, point))
    hessian = _hessian(model, inputs, second, compile_kwargs)
    gradient = OneAtATime(compiled(model, inputs, first, compile_kwargs))
    return Derivatives(gradient, _by_piece(OneAtATime(hessian)))


def compile_exact_derivatives(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> Derivatives:
    """Make gradient and Hessian of the exact part, by NumPy where it can do so fast.

    Parameters
    ----------
    likelihood, variables, shared, point, compile_kwargs
        As in `compile_row_derivatives`, and so is what is raised.
    """
    (exact,), theta = join_nonshared_inputs(point, [likelihood.exact], variables, shared)
    model = likelihood.model
    first, second = _derivatives(exact, theta, _size(variables, point))
    return Derivatives(
        interpreted(model, [theta], first) or compiled(model, [theta], first, compile_kwargs),
        _hessian(model, [theta], second, compile_kwargs),
    )


def _by_piece(hessian: Callable[..., NDArray]) -> Callable[..., NDArray]:
    """Sum over pieces of a block whose intermediate results fit in memory."""

    def of_block(point: NDArray, *block: NDArray) -> NDArray:
        n_rows = max(_ENTRIES // point.size, 1)
        starts = range(0, len(block[0]), n_rows)
        pieces = ([array[start : start + n_rows] for array in block] for start in starts)
        return np.sum([hessian(point, *piece) for piece in pieces], axis=0)

    return of_block


def _size(variables: Sequence, point: Mapping[str, NDArray]) -> int:
    return sum(np.size(point[variable.name]) for variable in variables)


class _Product(NamedTuple):
    """Hessian times a direction, and how many directions there are."""

    value: Any
    direction: Any
    size: int


def _derivatives(value: Any, theta: Any, size: int) -> tuple[list, _Product]:
    """Value and gradient, and the graph of the Hessian."""
    value = stabilized(value)
    gradient = grad(value, theta, disconnected_inputs="ignore")
    direction = theta.type("direction")
    product = grad((gradient * direction).sum(), theta, disconnected_inputs="ignore")
    product = (product + 0.0 * direction).astype("float64")  # a constant gets dimensions, too
    return [v.astype("float64") for v in (value, gradient)], _Product(product, direction, size)


def _hessian(
    model: pm.Model, inputs: list, product: _Product, compile_kwargs: dict[str, Any] | None
) -> Callable[..., NDArray]:
    """The Hessian, compiled when it is asked for first: not every use of a gradient needs it."""
    made: list[Callable[..., NDArray]] = []

    def hessian(*arguments: NDArray) -> NDArray:
        if not made:
            made.append(_compiled_hessian(model, inputs, product, compile_kwargs))
        return made[0](*arguments)

    return hessian


def _compiled_hessian(
    model: pm.Model, inputs: list, product: _Product, compile_kwargs: dict[str, Any] | None
) -> Callable[..., NDArray]:
    """All directions at once in NumPy, or else one after the other in numba.

    At once, what does not depend on the direction is computed once, the rest by matrix products.
    """
    value, direction, size = product
    directions = matrix("directions", dtype=direction.dtype)
    try:
        at_once = vectorize_graph(value, {direction: directions})
    except NotImplementedError:  # not every operation knows how to
        function = None
    else:
        few = not any(isinstance(node.op, Blockwise) for node in toposort([value]))
        function = interpreted(model, [directions, *inputs], [at_once], few_batches=few)
    if function is not None:
        return lambda *arguments: function(np.eye(size, dtype=direction.dtype), *arguments)[0]
    one = compiled(model, [direction, *inputs], value, compile_kwargs)
    return lambda *arguments: np.stack(
        [one(along, *arguments) for along in np.eye(size, dtype=direction.dtype)]
    )


def compile_residuals(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    order: int = 2,
    compile_kwargs: dict[str, Any] | None = None,
) -> Callable[..., NDArray]:
    r"""Compile the row differences minus their Taylor expansion about an anchor.

    With :math:`d = \theta' - \theta` and :math:`s = (\theta' - \theta^*) + (\theta - \theta^*)`,

    .. math:: r_i = l_i - g_i \cdot d - \tfrac12 d' H_i s

    where :math:`g_i, H_i` are gradient and Hessian of the row at the anchor; neither is ever
    formed, only directional derivatives of the row graph (Bardenet, Doucet and Holmes 2017).

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.
    variables, shared, point, compile_kwargs
        As in `compile_row_differences`.
    order : {1, 2}
        Order of the expansion.

    Returns
    -------
    callable
        ``f(proposed, current, anchor, *block)``: float64 array, shape (rows in the block,), nats.
    """
    (rows,), theta = join_nonshared_inputs(point, [likelihood.rows], variables, shared)
    proposed, current, anchor = (theta.type(name) for name in ("proposed", "current", "anchor"))
    d, s = theta.type("d"), theta.type("s")
    stable = stabilized(rows)
    first = pushforward(stable, theta, d)
    terms = first
    if order == 2:
        terms = first + 0.5 * pushforward(first, theta, s)
    moved = {d: proposed - current, s: (proposed - anchor) + (current - anchor)}
    (expansion,) = clone_replace([terms], moved | {theta: anchor}, rebuild_strict=False)
    (at_proposed,) = clone_replace([rows], {theta: proposed}, rebuild_strict=False)
    (at_current,) = clone_replace([rows], {theta: current}, rebuild_strict=False)
    residual = (at_proposed - at_current - expansion).astype("float64")
    placeholders = [leaf.placeholder for leaf in likelihood.leaves]
    inputs = [proposed, current, anchor, *placeholders]
    return compiled(likelihood.model, inputs, residual, compile_kwargs)
