"""Models on ``pm.Minibatch``, evaluated on their full data."""

from collections.abc import Sequence

import pymc as pm

from pymc_austerity._pymc import (
    MinibatchOp,
    Variable,
    ancestors,
    clone_replace,
    remove_minibatched_nodes,
)
from pymc_austerity.model.inline import inlined
from pymc_austerity.model.widened import widened

__all__ = ["counterpart", "in_terms_of", "log_density_on_full_data", "on_full_data"]


def on_full_data(model: pm.Model) -> pm.Model:
    """Undo ``pm.Minibatch``: a copy of the model on its full data, or the model itself.

    Notes
    -----
    The log-likelihood of a minibatch is scaled by ``total_size``; that of the full data is not.
    """
    graphs = [*model.observed_RVs, *model.potentials, *model.rvs_to_values.values()]
    if not any(_is_minibatch(variable) for variable in ancestors(graphs)):
        return model
    return remove_minibatched_nodes(model)


def _is_minibatch(variable: Variable) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, MinibatchOp)


def counterpart(variable: Variable, model: pm.Model) -> Variable:
    """Value variable of the user's model that belongs to a value variable of its copy."""
    return next(v for v in model.value_vars if v is variable or v.name == variable.name)


def in_terms_of(model: pm.Model, whole: pm.Model, graphs: Sequence[Variable]) -> list[Variable]:
    """Graphs in terms of the value variables of the user's model instead of those of its copy."""
    if whole is model:
        return list(graphs)
    replacements = {v: counterpart(v, model) for v in whole.value_vars}
    return list(clone_replace(list(graphs), replacements, rebuild_strict=False))


def log_density_on_full_data(model: pm.Model) -> Variable:
    """Log-density of a model, scalar, in nats, on its full data."""
    whole = on_full_data(model)
    (log_density,) = in_terms_of(model, whole, widened(inlined([whole.logp()])))
    return log_density
