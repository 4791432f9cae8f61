"""Models that are split, and points as vectors."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_austerity.model import ModelAt, split_log_density


def at_start(model: pm.Model, **settings) -> ModelAt:
    """The model, split, with all its variables at the initial point."""
    point = model.initial_point()
    split = split_log_density(model, point=point, **settings)
    return ModelAt(split, list(model.value_vars), {}, point)


def raveled(point, variables) -> np.ndarray:
    """The values of variables as one vector."""
    return np.concatenate([np.ravel(point[v.name]) for v in variables])


def by_name(vector, variables, point) -> dict[str, np.ndarray]:
    """A vector parted into the variables of a point."""
    shapes = [np.shape(point[v.name]) for v in variables]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    parts = zip(variables, np.split(vector, ends), shapes, strict=True)
    return {v.name: part.reshape(shape) for v, part, shape in parts}


def bessel() -> None:
    """Rows without derivatives: the unknown is the order of a Bessel function."""
    order = pm.HalfNormal("order")
    pm.CustomDist("y", order, logp=lambda x, v: pt.log(pt.kve(v, x)), observed=np.ones(30))
