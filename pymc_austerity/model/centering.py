"""Levels that rows read as products with their scales, written in terms of the products."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Variable,
    clone_replace,
    discrete_types,
    join_nonshared_inputs,
    rewrite_graph,
)
from pymc_austerity.model.compiling import compiled
from pymc_austerity.model.cut import Known
from pymc_austerity.model.interpret import interpreted
from pymc_austerity.model.products import find_products
from pymc_austerity.model.rewritten import inlined
from pymc_austerity.model.row_likelihood import RowLikelihood

__all__ = ["Centered", "candidates_for_centering", "centered", "change_of_point"]


@dataclass(frozen=True, eq=False)
class Centered:
    r"""A log-density in terms of :math:`u = s z`, where rows read :math:`z` in this product only.

    Attributes
    ----------
    likelihood : RowLikelihood
        The value variables of :math:`z` stand for :math:`u`; the Jacobian of the change is among
        the priors.
    names : tuple of str
        Of the variables :math:`z`.
    products : callable
        From a raveled point of the user's to one of `likelihood`.
    factors : callable
        Inverse of `products`.
    """

    likelihood: RowLikelihood
    names: tuple[str, ...]
    products: Callable[[NDArray], NDArray[np.float64]]
    factors: Callable[[NDArray], NDArray[np.float64]]


def centered(
    split: RowLikelihood,
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    fewest: int = 2,
) -> Centered | None:
    r"""Write the levels of non-centered factors in terms of the products that rows read.

    In ``mu + tau * z[group]`` rows depend on ``z`` and ``tau`` through their product alone. In
    terms of :math:`u = \tau z` they are functions of a linear predictor, and the scale is read
    by no row:

    .. math:: \log p(u | \tau) = \log p_z(u / \tau) - \log |\tau|

    Parameters
    ----------
    split : RowLikelihood
        The split log-density.
    variables : sequence of variables
        Value variables, in the order of the raveled vector.
    point : dict of str to array
        Their values, for their shapes.
    fewest : int
        Levels that a factor has at least.

    Returns
    -------
    Centered or None
        None where there are no such products.

    References
    ----------
    Papaspiliopoulos, O., Roberts, G. O. and Sköld, M. (2007). A general framework for the
    parametrization of hierarchical models. Statistical Science 22(1), 59-73.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_austerity.model import split_log_density
    >>> group = np.arange(100) % 5
    >>> with pm.Model() as model:
    ...     tau, z = pm.HalfNormal("tau"), pm.Normal("z", shape=5)
    ...     _ = pm.Poisson("y", pm.math.exp(tau * z[group]), observed=group)
    >>> start = model.initial_point()
    >>> found = centered(split_log_density(model), model.value_vars, start)
    >>> found.names
    ('z',)
    >>> found.products(np.array([np.log(2.0), 1.0, 2.0, 3.0, 4.0, 5.0])).round(3)
    array([ 0.693,  2.   ,  4.   ,  6.   ,  8.   , 10.   ])
    """
    candidates = candidates_for_centering(split, variables, point, fewest)
    if not candidates:
        return None
    (rows,) = inlined([split.rows])
    rows = rewrite_graph(rows, include=("merge",))
    products = find_products(rows, candidates, variables, Known(split.value_vars, point))
    if not products:
        return None
    undone = {p.factor: p.inverse() for p in products}
    jacobians = [p.log_jacobian() for p in products]
    likelihood = replace(
        split,
        exact=pt.add(clone_replace(split.exact, undone), *(term.sum() for term in jacobians)),
        exact_terms=(*clone_replace(list(split.exact_terms), undone), *jacobians),
        rows=clone_replace(rows, {k: v for p in products for k, v in p.uses.items()}),
        full=clone_replace(split.full, undone),
        joint_terms=tuple((k, clone_replace(term, undone)) for k, term in split.joint_terms),
    )
    names = tuple(str(p.factor.name) for p in products)
    done = {p.factor: p.forward() for p in products}
    there, back = (change_of_point(split, variables, change, point) for change in (done, undone))
    return Centered(likelihood, names, there, back)


def candidates_for_centering(
    split: RowLikelihood,
    variables: Sequence[Variable],
    point: Mapping[str, NDArray],
    fewest: int = 2,
) -> list[Variable]:
    """Arrays of numbers, of at least so many levels, that are not transformed."""
    rvs, transforms = split.model.values_to_rvs, split.model.rvs_to_transforms
    return [
        v
        for v in variables
        if v.type.ndim in (1, 2)
        and v.dtype not in discrete_types
        and transforms.get(rvs.get(v)) is None
        and max(np.shape(point[v.name])) >= fewest
    ]


def change_of_point(
    split: RowLikelihood,
    variables: Sequence[Variable],
    changed: Mapping[Variable, Variable],
    point: Mapping[str, NDArray],
) -> "_Change":
    """A function of the raveled point that changes some variables."""
    parts = [changed.get(v, v).ravel().astype("float64") for v in variables]
    joined, theta = join_nonshared_inputs(dict(point), [pt.concatenate(parts)], list(variables), {})
    function = interpreted(split.model, [theta], joined)
    return _Change(function or compiled(split.model, [theta], joined, None))


@dataclass(frozen=True)
class _Change:
    """A change of the raveled point."""

    function: Callable[[NDArray], list[NDArray]]

    def __call__(self, point: NDArray) -> NDArray[np.float64]:
        return np.array(self.function(point)[0])
