"""The function of one row's predictors, prepared for interval arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pytensor
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    CAReduce,
    CheckAndRaise,
    LogicalAnd,
    MakeVector,
    ScalarFromTensor,
    Variable,
    clone_replace,
    rewrite_graph,
    toposort,
)
from pymc_austerity.model.bounds.logarithms import expand_logarithms

__all__ = ["ScalarFunction", "scalar_function"]


@dataclass(frozen=True, eq=False)
class ScalarFunction:
    """Log-likelihood of rows as a function of their predictors.

    Attributes
    ----------
    predictors : tuple of k variables, shape (m,)
        Predictors of the rows.
    placeholders : tuple of variables
        Data of the rows.
    value : variable, shape (m,)
        Log-likelihoods, nats, without checks of parameters.
    conditions : tuple of variables
        What the checks ask for.
    constants : tuple of variables
        Parts of the graphs that do not depend on the predictors but feed parts that do.
    evaluate_constants : callable
        Their values, from the data of rows.
    """

    predictors: tuple[Variable, ...]
    placeholders: tuple[Variable, ...]
    value: Variable
    conditions: tuple[Variable, ...]
    constants: tuple[Variable, ...]
    evaluate_constants: Callable[..., list[NDArray]]

    @property
    def n_predictors(self) -> int:
        """Number of predictors, k."""
        return len(self.predictors)

    def nodes(self) -> list:
        """Nodes that depend on the predictors, inputs first."""
        return _dependent_nodes(self.predictors, [self.value, *self.conditions])

    @cached_property
    def has_indices(self) -> bool:
        """Whether data of the rows choose among entries, as categories do."""
        return any(isinstance(node.op, ADVANCED_SUBTENSOR_OPS) for node in self.nodes())

    def constants_of(self, arrays: Sequence[NDArray]) -> Mapping[Variable, NDArray]:
        """Values of the constants for the given rows."""
        return dict(zip(self.constants, self.evaluate_constants(*arrays), strict=True))


def scalar_function(
    function: Variable, predictors: Sequence[Variable], placeholders: Sequence[Variable]
) -> ScalarFunction:
    """Prepare a function of predictors: take out checks, rewrite what is left in stable forms.

    Parameters
    ----------
    function : variable, shape (m,)
        Log-likelihood of rows.
    predictors : sequence of k variables, shape (m,)
        Predictors that it is a function of.
    placeholders : sequence of variables
        Data of the rows, rows on axis 0.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> eta, y = pt.dvector("eta"), pt.dvector("y")
    >>> prepared = scalar_function(y * eta - pt.log(1 + pt.exp(eta)), [eta], [y])
    >>> sorted(str(node.op) for node in prepared.nodes())
    ['Mul', 'Softplus', 'Sub']
    """
    plain, conditions = _without_checks(function)
    graphs = rewrite_graph([plain, *conditions], include=("stabilize",))
    graphs = rewrite_graph(graphs, include=("canonicalize", "stabilize"))
    graphs = expand_logarithms(graphs, predictors)
    graphs = rewrite_graph(graphs, include=("canonicalize", "stabilize"))
    nodes = _dependent_nodes(predictors, graphs)
    dependent = {*predictors, *(out for node in nodes for out in node.outputs)}
    inputs = [v for node in nodes for v in node.inputs] + list(graphs)
    constants = list(dict.fromkeys(v for v in inputs if v not in dependent and _is_array(v)))
    evaluate = pytensor.function(
        list(placeholders), constants, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return ScalarFunction(
        tuple(predictors), tuple(placeholders), graphs[0], tuple(graphs[1:]),
        tuple(constants), evaluate,
    )  # fmt: skip


def _is_array(variable: Variable) -> bool:
    return hasattr(variable.type, "dtype")


def _without_checks(graph: Variable) -> tuple[Variable, list[Variable]]:
    conditions: list[Variable] = []
    while True:
        checks = (node for node in toposort([graph]) if isinstance(node.op, CheckAndRaise))
        check = next(checks, None)
        if check is None:
            return graph, conditions
        checked, *asked = check.inputs
        conditions += [part for condition in asked for part in _parts_of(condition)]
        if check.outputs[0] is graph:
            graph = checked
        else:
            graph = clone_replace(graph, {check.outputs[0]: checked}, rebuild_strict=False)


def _parts_of(condition: Variable) -> list[Variable]:
    """Element-wise conditions whose conjunction over all entries is the condition."""
    node = condition.owner
    if node is None:
        return [condition]
    is_conjunction = isinstance(node.op, CAReduce) and isinstance(node.op.scalar_op, LogicalAnd)
    if is_conjunction or isinstance(node.op, ScalarFromTensor):
        return _parts_of(node.inputs[0])
    if isinstance(node.op, MakeVector):
        return [part for v in node.inputs for part in _parts_of(v)]
    return [condition]


def _dependent_nodes(predictors: Sequence[Variable], graphs: Sequence[Variable]) -> list:
    dependent, nodes = set(predictors), []
    for node in toposort(list(graphs)):
        if any(v in dependent for v in node.inputs):
            dependent.update(node.outputs)
            nodes.append(node)
    return nodes
