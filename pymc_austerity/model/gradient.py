"""Gradient of the log-density from some rows, as one compiled function."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from pymc_austerity._pymc import clone_replace, grad, join_nonshared_inputs, stabilized
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["compile_gradient"]


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
