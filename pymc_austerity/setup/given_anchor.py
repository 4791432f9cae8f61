"""An anchor that the user gives."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import make_initial_point_fn
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.setup.model_inputs import draws_of_model, raveled

__all__ = ["anchor_point"]


def anchor_point(anchor: Any, variables: Sequence, model: pm.Model) -> NDArray | None:
    """The raveled point, in unconstrained space, that a user gives in one of several forms.

    Parameters
    ----------
    anchor : None, dict, InferenceData or DataTree
        Values of the free variables by name, or draws of them, whose mean is taken.
    variables : sequence
        Value variables of the step method.
    model : pymc.Model
        The model they belong to.

    Raises
    ------
    SettingTypeError
        If the anchor has another form.
    SettingError
        If a value is missing, has another shape, or lies outside of the support.
    """
    if anchor is None:
        return None
    if hasattr(anchor, "posterior"):
        draws = draws_of_model("anchor", anchor)
        anchor = {
            rv.name: draws[rv.name].mean(("chain", "draw")).values
            for rv in model.free_RVs
            if rv.name in draws
        }
    names = [rv.name for rv in model.free_RVs]
    if not isinstance(anchor, Mapping):
        raise SettingTypeError(
            f"anchor of type {type(anchor).__name__} is not a point: give a dictionary with values "
            "of the free variables, or what pm.sample returned."
        )
    missing = sorted(set(names) - set(anchor))
    if missing:
        raise SettingError(
            f"anchor lacks {', '.join(map(repr, missing))}: give a value for every free variable."
        )
    shapes = model.eval_rv_shapes()
    for name in names:
        shape, found = tuple(map(int, shapes[name])), np.shape(anchor[name])
        if found != shape:
            raise SettingError(
                f"anchor has a value of shape {found} for {name!r}: give one of shape {shape}."
            )
    overrides = {model[name]: np.asarray(anchor[name]) for name in names}
    point = raveled(
        make_initial_point_fn(model=model, overrides=overrides, jitter_rvs=set())(0), variables
    )
    if not np.isfinite(point).all():
        raise SettingError(
            "anchor is not finite in unconstrained space: give finite values inside of the support "
            "of every free variable."
        )
    return point
