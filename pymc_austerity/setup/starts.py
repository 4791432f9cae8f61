"""What is known of the variables before the first step: their kinds and where chains start."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    BernoulliRV,
    CategoricalRV,
    discrete_types,
    make_initial_point_fn,
)
from pymc_austerity.distributions import on_manifold
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals import Block, GaussianApproximation, Layout, Proposal
from pymc_austerity.setup.model_inputs import raveled
from pymc_austerity.setup.target import Machinery

__all__ = ["anchor_point", "disperse", "disperse_about", "layout_of", "start_of_chain"]

_RETRIES = 10


def layout_of(variables: Sequence, model: pm.Model, point: Mapping[str, NDArray]) -> Layout:
    """Kinds of the entries of the raveled variables."""
    kinds = [
        np.full(np.size(point[variable.name]), _n_categories(variable, model, point))
        for variable in variables
    ]
    firsts = np.cumsum([0, *map(len, kinds)])
    blocks = tuple(
        Block(
            variable.name,
            np.shape(point[variable.name]),
            int(first),
            orthonormal=on_manifold(model.values_to_rvs[variable]),
        )
        for variable, first in zip(variables, firsts[:-1], strict=True)
    )
    return Layout(np.concatenate(kinds).astype(np.int64), blocks)


def _n_categories(variable: pm.Model, model: pm.Model, point: Mapping[str, NDArray]) -> int:
    if variable.dtype not in discrete_types:
        return 0
    random_variable = model.values_to_rvs[variable]
    distribution = random_variable.owner.op
    if isinstance(distribution, BernoulliRV):
        return 2
    if isinstance(distribution, CategoricalRV):
        # the last input of a categorical variable is its vector of probabilities
        (length,) = model.replace_rvs_by_values([random_variable.owner.inputs[-1].shape[-1]])
        evaluate = model.compile_fn(length, inputs=model.value_vars, on_unused_input="ignore")
        return int(evaluate(point))
    return 1


def start_of_chain(
    machinery: Machinery,
    layout: Layout,
    point: NDArray,
    rng: np.random.Generator,
    *,
    proposal: Proposal[Any],
) -> NDArray:
    """Overdispersed start about a normal approximation of the posterior, or about the point."""

    def is_possible(candidate: NDArray) -> bool:
        return machinery.is_possible(candidate, point)

    if machinery.approximation is not None:
        return disperse_about(machinery.approximation, point, is_possible, rng)
    return disperse(point, layout, is_possible, rng, proposal=proposal)


def disperse(
    point: NDArray,
    layout: Layout,
    is_possible: Callable[[NDArray], bool],
    rng: np.random.Generator,
    *,
    proposal: Any = None,
) -> NDArray:
    """Overdispersed start: real entries moved uniformly within (-1, 1), as PyMC's NUTS does it.

    A proposal that knows better where points can be has a method
    ``disperse(layout, point, radius, rng)``, which then makes the candidates.

    Parameters
    ----------
    point : array, shape (d,)
        Common starting point of the chains, in unconstrained space.
    layout : Layout
        Kinds of its entries; only real ones are moved.
    is_possible : callable
        Whether the log-density at a point is finite.
    rng : numpy.random.Generator
        Source of randomness.
    proposal : Proposal, optional
        The chain's own.

    Returns
    -------
    array, shape (d,)
        The first possible one of ten candidates, each half as far away as the one before; the
        point itself if there is none.
    """
    move = getattr(proposal, "disperse", _moved_uniformly)
    radius = 1.0
    for _ in range(_RETRIES):
        candidate = move(layout, point, radius, rng).astype(point.dtype)
        if is_possible(candidate):
            return candidate
        radius /= 2.0
    return point


def _moved_uniformly(
    layout: Layout, point: NDArray, radius: float, rng: np.random.Generator
) -> NDArray:
    real = layout.n_categories == 0
    return point + np.where(real, rng.uniform(-radius, radius, size=point.size), 0.0)


def disperse_about(
    approximation: GaussianApproximation,
    point: NDArray,
    is_possible: Callable[[NDArray], bool],
    rng: np.random.Generator,
) -> NDArray:
    """Overdispersed start: a draw from the normal approximation with twice its spread.

    Parameters
    ----------
    approximation : GaussianApproximation
        Of the posterior.
    point : array, shape (d,)
        Fallback, if ten draws, each half as wide as the one before, are not possible.
    is_possible : callable
        Whether the log-density at a point is finite.
    rng : numpy.random.Generator
        Source of randomness.
    """
    width = 2.0
    for _ in range(_RETRIES):
        moves = width * approximation.root.dot(rng.standard_normal(point.size))
        candidate = (approximation.mean + moves).astype(point.dtype)
        if is_possible(candidate):
            return candidate
        width /= 2.0
    return point


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
    """
    if anchor is None:
        return None
    if hasattr(anchor, "posterior"):
        draws = anchor.posterior
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
