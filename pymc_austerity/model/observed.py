"""What is known of a model that is not split into rows."""

from typing import NoReturn

import numpy as np
import pymc as pm

from pymc_austerity._pymc import SimulatorRV
from pymc_austerity.errors import DataError, NotRowwiseError
from pymc_austerity.model.cut import array_of
from pymc_austerity.model.inline import inlined
from pymc_austerity.model.widened import refuse_overflow

__all__ = ["refuse_not_finite", "refuse_simulators", "rows_observed"]


def refuse_simulators(model: pm.Model) -> None:
    """Refuse what no sampler of ``pm.sample`` can sample.

    Raises
    ------
    NotRowwiseError
        Names the variable whose log-density is random.
    """
    for variable in model.observed_RVs:
        if isinstance(variable.owner.op, SimulatorRV):
            raise NotRowwiseError(
                f"the log-density of {variable.name!r} is random, as that of pm.Simulator, so that "
                "it cannot be compared between points: use pm.sample_smc for this model."
            )


def refuse_not_finite(model: pm.Model) -> NoReturn:
    """Raise the error of a chain whose start has no density.

    Raises
    ------
    DataError
        Says what to do.
    """
    variables = [*model.basic_RVs, *model.potentials]
    graphs = inlined(model.logp(vars=variables, jacobian=True, sum=False))
    point = model.initial_point()
    terms = {variable.name: graph for variable, graph in zip(variables, graphs, strict=True)}
    refuse_overflow(terms, model.value_vars, [np.asarray(point[v.name]) for v in model.value_vars])
    raise DataError(
        "the log-density is not finite where this chain starts: model.point_logps() says which "
        "term it is; mend that term, or give other initvals to pm.sample."
    )


def rows_observed(model: pm.Model) -> dict[str, int]:
    """Number of entries of every observed variable; those with axes 1, 2, ... count as well.

    Parameters
    ----------
    model : pymc.Model

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import rows_observed
    >>> with pm.Model() as model:
    ...     _ = pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.zeros(3))
    >>> rows_observed(model)
    {'y': 3}
    """
    values = {rv.name: model.rvs_to_values[rv] for rv in model.observed_RVs}
    arrays = {name: array_of(value) for name, value in values.items()}
    return {
        name: int(np.size(array) if array is not None else values[name].size.eval())
        for name, array in arrays.items()
    }
