"""The forward walk, which sorts variables: independent of parameters, linear, beyond."""

from collections.abc import Mapping

from pymc_austerity._pymc import Variable, toposort
from pymc_austerity.model.predictors import (  # noqa: F401  each registers its rules
    rules_elementwise,
    rules_joining,
    rules_products,
    rules_rearranging,
)
from pymc_austerity.model.predictors.affine import Affine, TooLargeError
from pymc_austerity.model.predictors.facts import Facts
from pymc_austerity.model.predictors.linear import BeyondError, Walk, rule

__all__ = ["walk"]


def walk(output: Variable, parameters: Mapping[Variable, Affine], facts: Facts, size: int) -> Walk:
    """Find everything linear in a graph.

    Parameters
    ----------
    output : variable
        Log-likelihoods of rows.
    parameters : mapping of variable to Affine
        The value variables as arrays of entries of the raveled vector.
    facts : Facts
        Properties of the graph.
    size : int
        Length of the raveled vector.
    """
    result = Walk(facts, size)
    result.linear.update(parameters)
    for node in toposort([output], blockers=list(parameters)):
        inputs = [i for i in node.inputs if facts.depends(i)]
        if not inputs or any(result.is_beyond(i) for i in inputs) or len(node.outputs) > 1:
            continue
        if not getattr(node.outputs[0].type, "dtype", "").startswith("float"):
            continue
        try:
            found = rule(node.op, node, result)
        except (BeyondError, TooLargeError):
            continue
        result.linear[node.outputs[0]] = found
    return result
