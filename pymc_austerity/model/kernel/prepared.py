"""The function above the predictors, rewritten for evaluation."""

from pymc_austerity._pymc import (
    UNSUITABLE,
    CheckParameterValue,
    Variable,
    clone_replace,
    rewrite_graph,
    stabilized,
    toposort,
)
from pymc_austerity.model.inline import inlined

__all__ = ["prepared"]


def prepared(function: Variable, check_bounds: bool = True) -> Variable:
    """Rewrite a graph into stable and cheap operations, without loops or fused operations.

    Parameters
    ----------
    function : variable
    check_bounds : bool
        Whether checks of parameters stay.
    """
    (graph,) = inlined([clone_replace(function, {}, rebuild_strict=False)])
    if not check_bounds:
        graph = _without_checks(graph)
    return rewrite_graph(
        stabilized(graph),
        include=("canonicalize", "stabilize", "specialize"),
        exclude=("local_pow_to_nested_squaring", *UNSUITABLE),
    )


def _without_checks(graph: Variable) -> Variable:
    while checks := [n for n in toposort([graph]) if isinstance(n.op, CheckParameterValue)]:
        replacement = {checks[0].outputs[0]: checks[0].inputs[0]}
        graph = clone_replace(graph, replacement, rebuild_strict=False)
    return graph
