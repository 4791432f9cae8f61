"""Log-likelihoods of rows, summed at many points at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.model.kernel.formula import indented, module_with
from pymc_austerity.model.kernel.generated import module_of
from pymc_austerity.model.kernel.row_formula import row_formula_of
from pymc_austerity.model.kernel.scalar import (
    Dependence,
    Names,
    NoKernelError,
    Scalar,
    computed_from,
    statements,
)
from pymc_austerity.model.predictors.derivatives import predictor_values
from pymc_austerity.model.predictors.structure import (
    DesignFunction,
    RowStructure,
    design_function,
)

_FUNCTION = """
@njit(error_model="numpy", cache=CACHE)
def totals(etas, out, {arrays}):
    common = np.empty(({n_common}, out.size))
    for p in range(out.size):
{of_points}
    for i in range(etas.shape[1]):
{of_row}
        for p in range(out.size):
{own}
            out[p] += {value}
"""

_MOST_OPERATIONS = 2_000
"""Beyond, compiling takes longer than it saves."""


@dataclass(frozen=True, eq=False)
class RowTotals:
    """Sums over rows of their log-likelihoods, at many points at once.

    The linear predictors of a block of rows at all points are one product of two matrices.

    Attributes
    ----------
    designs : callable
        Evaluates the matrices of the predictors.
    source : str
        Of the generated module; empty where the formula of a row has no rule.
    by_graph : callable or None
        In its place, ``f(*etas, *block)``: a list of the log-likelihoods of the rows at one point.
    """

    designs: DesignFunction
    source: str
    by_graph: Callable[..., list] | None = None

    def __call__(self, points: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Sums over a block of rows, shape (n,), nats.

        Parameters
        ----------
        points : float array, shape (n, d)
        *block : array
            One for each leaf, rows on axis 0, C-contiguous.
        """
        columns = points.T.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):  # what is not finite is rejected
            etas = np.stack([design.eta(columns) for design in self.designs(block)])
            if self.by_graph is not None:
                at_points = (self.by_graph(*etas[..., p], *block) for p in range(len(points)))
                return np.array([float(values.sum()) for (values,) in at_points])
            total = np.zeros(len(points))
            self._function(np.ascontiguousarray(etas), total, *block)
            return total

    @cached_property
    def _function(self) -> Any:
        return module_of(self.source).totals

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the compiled function."""
        return {name: value for name, value in vars(self).items() if name != "_function"}


def row_totals(
    structure: RowStructure, model: pm.Model, *, compile_kwargs: dict[str, Any] | None = None
) -> RowTotals:
    """Make the sums of rows that are functions of linear predictors.

    Parameters
    ----------
    structure : RowStructure
        The rows as a function of linear predictors.
    model : pymc.Model
        The model, for compilation.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile`` where the formula of a row has no rule.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import ModelAt, find_predictors, row_totals, split_log_density
    >>> with pm.Model() as model:
    ...     b = pm.Normal("b", shape=2)
    ...     _ = pm.Poisson("y", pm.math.exp(np.eye(2) @ b), observed=np.zeros(2))
    >>> split = split_log_density(model)
    >>> structure = find_predictors(ModelAt(split, model.value_vars, {}, model.initial_point()))
    >>> row_totals(structure, model)(np.zeros((2, 2)), *split.arrays)
    array([-2., -2.])
    """
    designs = design_function(structure, model)
    try:
        return RowTotals(designs, source_of_totals(structure))
    except NoKernelError:
        return RowTotals(designs, "", predictor_values(structure, model, compile_kwargs))


def source_of_totals(structure: RowStructure) -> str:
    """Source of the module: what points or rows share is computed once for them.

    Raises
    ------
    NoKernelError
        An operation has no rule, or there are too many.
    """
    layout = row_formula_of(structure)
    lines = range(len(layout.lines))
    shared = {k for k in lines if layout.lines[k].is_common}
    names = Names("t")
    common = computed_from([layout.root], Dependence.POINT)
    of_points = [f"eta_{k} = etas[{k}, 0, p]" for k in lines if k in shared]
    of_points += statements(common, names)
    of_points += [f"common[{n}, p] = {names.of(scalar)}" for n, scalar in enumerate(common)]
    names = Names("r", {scalar: _read(scalar, n) for n, scalar in enumerate(common)})
    of_row = statements(computed_from([layout.root], Dependence.DATA), names)
    own = [f"eta_{k} = etas[{k}, i, p]" for k in lines]
    own += statements([layout.root], names)
    function = _FUNCTION.format(
        arrays=", ".join(f"leaf_{k}" for k in range(len(structure.leaves))),
        n_common=len(common),
        of_points=indented(2, of_points),
        of_row=indented(2, of_row),
        own=indented(3, own),
        value=names.of(layout.root),
    )
    title = "Log-likelihoods of rows at many points"
    return module_with(title, [layout.root], function, _MOST_OPERATIONS)


def _read(scalar: Scalar, n: int) -> str:
    """A scalar that was stored as a real number."""
    number = f"common[{n}, p]"
    return {"b": f"({number} != 0.0)", "i": f"int({number})", "f": number}[scalar.kind]
