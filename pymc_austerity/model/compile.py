"""Compiled differences of the log-density between two points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable, clone_replace, join_nonshared_inputs
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["CompiledDifferences", "compile_differences"]


@dataclass(frozen=True)
class CompiledDifferences:
    """Functions of two points, both raveled vectors of shape (d,).

    Attributes
    ----------
    rows : callable
        ``rows(proposed, current, *leaf_rows)``: differences of the log-likelihoods of the rows
        given, float64 array, shape (m,), nats.
    exact : callable
        ``exact(proposed, current)``: difference of the exact part, float64, 0-d, nats.
    """

    rows: Callable[..., NDArray[np.float64]]
    exact: Callable[..., NDArray[np.float64]]


def compile_differences(
    row_likelihood: RowLikelihood,
    vars: Sequence[Variable],
    shared: Mapping[Variable, Variable],
    point: Mapping[str, NDArray],
    *,
    compile_kwargs: dict[str, Any] | None = None,
) -> CompiledDifferences:
    """Compile the differences of the row part and of the exact part between two points.

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
    CompiledDifferences
        They trust their inputs: arrays of the right dtype, nothing else. A failed check of
        parameters gives -inf, or is left out if the model has ``check_bounds=False``.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import compile_differences, split_log_density
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1.0, observed=np.arange(10.0))
    >>> differences = compile_differences(
    ...     split_log_density(model), model.value_vars, {}, model.initial_point(),
    ...     compile_kwargs={"mode": "FAST_COMPILE"},
    ... )
    >>> differences.rows(np.array([1.0]), np.array([0.0]), np.array([0.0, 2.0]))
    array([-0.5,  1.5])
    """
    placeholders = [leaf.placeholder for leaf in row_likelihood.leaves]
    graphs, current = join_nonshared_inputs(
        dict(point), [row_likelihood.rows, row_likelihood.exact], list(vars), dict(shared)
    )
    proposed = current.type("proposed")
    rows, exact = (
        (new - old).astype("float64")
        for new, old in zip(
            clone_replace(graphs, {current: proposed}, rebuild_strict=False), graphs, strict=True
        )
    )
    model = row_likelihood.model
    rows_function = compiled(model, [proposed, current, *placeholders], rows, compile_kwargs)
    exact_function = compiled(model, [proposed, current], exact, compile_kwargs)
    return CompiledDifferences(rows_function, exact_function)
