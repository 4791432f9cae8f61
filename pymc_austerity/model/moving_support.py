"""Likelihoods whose support depends on parameters, found in the graph of the rows."""

import numpy as np

from pymc_austerity._pymc import (
    Alloc,
    Constant,
    DimShuffle,
    Elemwise,
    OrderComparison,
    Switch,
    Variable,
    ancestors,
    toposort,
)
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["variables_that_move_the_support"]


def variables_that_move_the_support(likelihood: RowLikelihood) -> list[Variable]:
    r"""Value variables on which the support of the rows depends.

    Such a likelihood has a branch of minus infinity, taken where data are larger or smaller than
    some function of the parameters. A single row then decides, and samples of the others tell
    nothing about it.

    Parameters
    ----------
    likelihood : RowLikelihood
        The split log-density.

    Returns
    -------
    list of variables
        In the order of the model; empty if the support is fixed, or known only when the graph is
        evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import split_log_density, variables_that_move_the_support
    >>> with pm.Model() as model:
    ...     low, width = pm.Normal("low", -1.0), pm.HalfNormal("width")
    ...     _ = pm.Uniform("y", low, 9.0, observed=np.arange(8.0))
    ...     _ = pm.Normal("z", 0.0, width, observed=np.arange(8.0))
    >>> variables_that_move_the_support(split_log_density(model))
    [low]
    """
    leaves = {leaf.placeholder for leaf in likelihood.leaves}
    parameters, depends = set(likelihood.value_vars), _Dependence(leaves, likelihood)
    found: set[Variable] = set()
    for node in toposort([likelihood.rows]):
        if _is_elementwise(node, Switch) and any(map(_is_minus_infinity, node.inputs[1:])):
            for comparison in toposort([node.inputs[0]]):
                if _is_elementwise(comparison, OrderComparison) and depends.differ(comparison):
                    found |= parameters & set(ancestors(comparison.inputs))
    return [variable for variable in likelihood.value_vars if variable in found]


class _Dependence:
    """Which variables of a graph depend on rows, and which on parameters."""

    def __init__(self, leaves: set[Variable], likelihood: RowLikelihood) -> None:
        self.on_rows, self.on_parameters = set(leaves), set(likelihood.value_vars)
        for node in toposort([likelihood.rows]):
            for kind in (self.on_rows, self.on_parameters):
                if any(variable in kind for variable in node.inputs):
                    kind.update(node.outputs)

    def differ(self, comparison: Variable) -> bool:
        """Whether data are compared with something that depends on parameters."""
        one, other = comparison.inputs
        return self._is_data(one, other) or self._is_data(other, one)

    def _is_data(self, one: Variable, other: Variable) -> bool:
        is_data = one in self.on_rows and one not in self.on_parameters
        return is_data and other in self.on_parameters


def _is_elementwise(node: Variable, kind: type | tuple[type, ...]) -> bool:
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, kind)


def _is_minus_infinity(variable: Variable) -> bool:
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle | Alloc):
        variable = variable.owner.inputs[0]
    return isinstance(variable, Constant) and bool(np.all(variable.data == -np.inf))
