"""Taylor terms of the row log-likelihoods, as compiled functions on any rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    clone_replace,
    grad,
    join_nonshared_inputs,
    pushforward,
    stabilized,
)
from pymc_austerity.likelihood.row_likelihood import RowLikelihood
from pymc_austerity.likelihood.special import expand_trigamma

__all__ = ["Derivatives", "compile_derivatives", "compile_residuals"]


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of the log-density, for the passes over all rows that set-up takes.

    Attributes
    ----------
    rows : callable
        ``f(point, direction, *block)``: sum of the log-likelihoods of the rows in the block, its
        gradient, shape ``(d,)``, and its Hessian times the direction, shape ``(d,)``.
    exact : callable
        ``f(point, direction)``: the same for the exact part.
    """

    rows: Callable[..., list[NDArray]]
    exact: Callable[..., list[NDArray]]


def compile_derivatives(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> Derivatives:
    """Compile sum, gradient and Hessian-vector product of the row part and of the exact part.

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.
    variables, shared, point, compile_kwargs
        As in `compile_differences`.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    (rows, exact), theta = join_nonshared_inputs(
        point, [likelihood.rows, likelihood.exact], variables, shared
    )
    direction = theta.type("direction")
    placeholders = [leaf.placeholder for leaf in likelihood.leaves]
    compiled = [
        _compile(likelihood.model, [theta, direction, *inputs], outputs, compile_kwargs)
        for inputs, outputs in (
            (placeholders, _up_to_second_order(rows.sum(), theta, direction)),
            ([], _up_to_second_order(exact, theta, direction)),
        )
    ]
    return Derivatives(*compiled)


def _up_to_second_order(value: Any, theta: Any, direction: Any) -> list:
    value = stabilized(value)
    gradient = grad(value, theta, disconnected_inputs="ignore")
    product = grad((gradient * direction).sum(), theta, disconnected_inputs="ignore")
    return [output.astype("float64") for output in (value, gradient, product)]


def compile_residuals(
    likelihood: RowLikelihood,
    variables: Sequence,
    shared: Mapping,
    point: Mapping[str, NDArray],
    *,
    order: int = 2,
    compile_kwargs: dict[str, Any] | None = None,
) -> Callable[..., NDArray]:
    r"""Compile the row differences less their Taylor expansion about an anchor.

    With :math:`d = \theta' - \theta` and :math:`s = (\theta' - \theta^*) + (\theta - \theta^*)`,

    .. math:: r_i = l_i - g_i \cdot d - \tfrac12 d' H_i s

    where :math:`g_i, H_i` are gradient and Hessian of the row at the anchor; neither is ever
    formed, only directional derivatives of the row graph (Bardenet, Doucet and Holmes 2017).

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.
    variables, shared, point, compile_kwargs
        As in `compile_differences`.
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
    return _compile(likelihood.model, inputs, residual, compile_kwargs)


def _compile(
    model: pm.Model, inputs: list, outputs: Any, compile_kwargs: dict[str, Any] | None
) -> Callable:
    many = isinstance(outputs, list)
    expanded = expand_trigamma(outputs if many else [outputs])
    kwargs = {"mode": "NUMBA", "on_unused_input": "ignore"} | (compile_kwargs or {})
    with model:  # so that the model's check_bounds is honoured
        function = pm.compile(inputs, expanded if many else expanded[0], **kwargs)
    function.trust_input = True
    return function
