"""How many rows a model has, before anything else is known of it."""

import numpy as np
import pymc as pm

from pymc_austerity.model.cut import array_of

__all__ = ["rows_observed"]


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
