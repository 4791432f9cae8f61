"""Compiled differences of the log-density between two points."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from pymc_austerity._pymc import Variable, clone_replace, join_nonshared_inputs
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["compile_exact_difference", "compile_row_differences"]


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
