"""Compare a kernel with the graph it was made of."""

from collections.abc import Callable, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import Mode, Variable, clone_replace
from pymc_austerity.model.kernel.kernel import Kernel
from pymc_austerity.model.predictors import Dense, Gathered, Predictor, RowStructure

__all__ = ["verify_kernel"]

_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}
"""Error of a difference, relative to one plus the log-densities; by precision of the graph."""


def verify_kernel(
    kernel: Kernel,
    structure: RowStructure,
    model: pm.Model,
    block: Sequence[NDArray],
    points: Sequence[NDArray],
) -> str | None:
    """Compare differences of a few rows with those of the graph, operation by operation in NumPy.

    Parameters
    ----------
    kernel : Kernel
    structure : RowStructure
        What it was made of.
    model : pymc.Model
        Its ``check_bounds`` is honoured.
    block : sequence of array
        A few rows, one array for each leaf.
    points : sequence of float arrays, shape (d,)
        At least two, near the initial point.

    Returns
    -------
    str or None
        What is wrong, or None.
    """
    evaluate = _interpreted(structure, model)
    values = [evaluate(point.astype(structure.dtype), *block) for point in points]
    for k in range(1, len(points)):
        found = kernel.differences(points[k], points[k - 1], *block)
        if not _agree(found, values[k], values[k - 1], structure.dtype):
            return "the compiled formula differs from the model"
    return None


def _agree(found: NDArray, new: NDArray, old: NDArray, dtype: np.dtype) -> bool:
    new, old = new.astype(np.float64), old.astype(np.float64)
    is_finite = np.isfinite(new) & np.isfinite(old)
    if not is_finite.all():  # one check of the graph that fails is a failure of all rows
        return not np.isfinite(found).all()
    allowed = _TOLERANCE[str(dtype)] * (1 + np.abs(new) + np.abs(old))
    return bool(np.all(np.abs(found - (new - old)) <= allowed))


def _interpreted(structure: RowStructure, model: pm.Model) -> Callable[..., NDArray]:
    """Log-densities of rows as a function of the point and a block."""
    point = pt.vector("point", dtype=str(structure.dtype))
    pairs = zip(structure.etas, structure.predictors, strict=True)
    etas = {eta: _graph(p, point, structure).astype(eta.type.dtype) for eta, p in pairs}
    rows = clone_replace(structure.function, etas, rebuild_strict=False)
    inputs = [point, *[leaf.placeholder for leaf in structure.leaves]]
    mode = Mode(linker="py", optimizer="fast_compile")
    with model:
        function = pm.compile(inputs, rows, mode=mode, on_unused_input="ignore")
    function.trust_input = True
    return function


def _graph(predictor: Predictor, point: Variable, structure: RowStructure) -> Variable:
    n_rows = structure.leaves[0].placeholder.shape[0]
    total = pt.zeros(n_rows) if predictor.offset is None else predictor.offset
    for term in predictor.terms:
        if isinstance(term, Dense):
            value = pt.dot(term.data, point[term.entries])
        elif isinstance(term, Gathered):
            value = point[term.entries][term.index]
        else:
            value = point[term.entry]
        coefficient = None if isinstance(term, Dense) else term.coefficient
        total = total + term.scale * (value if coefficient is None else coefficient * value)
    return total
