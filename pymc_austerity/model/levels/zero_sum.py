"""Effects that sum to zero, written in terms of levels that need not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Variable,
    ZeroSumNormalRV,
    ZeroSumTransform,
    ancestors,
    clone_replace,
    discrete_types,
    toposort,
)
from pymc_austerity.model.compiling import interpreted
from pymc_austerity.model.cut import Known
from pymc_austerity.model.cut.known import jittered
from pymc_austerity.model.levels.products import change_of_point, find_products, like
from pymc_austerity.model.rewritten import deduplicated
from pymc_austerity.model.row_likelihood import ModelAt
from pymc_austerity.model.verify import are_same
from pymc_austerity.time_limit import end_if_late

_MOST_TRIED, _TRIED_AT_ONCE = 1_000, 50
"""Entries of a variable that are examined one by one."""

_FEW_ROWS, _BLOCK = 100, 65_536
"""Rows that are read first, and at once."""

_SHIFT, _JITTER = 0.3, 0.3


@dataclass(frozen=True, eq=False)
class FreeLevels:
    r"""A log-density in terms of :math:`b = a + m`, with :math:`a` effects that sum to zero.

    Attributes
    ----------
    at : ModelAt
        Its value variable of the effects is that of the levels :math:`b`; that of the absorber
        stands for what rows read of it beside them.
    name : str
        Of the effects; their value variable has this name, too.
    absorber : str
        Name of the value variable of the absorber.
    entry : int
        Which of its entries that is.
    levels : callable
        From a raveled point of the user's to one of `at`, with a mean of 0.
    effects : callable
        From any raveled point of `at` to one of the user's.
    """

    at: ModelAt
    name: str
    absorber: str
    entry: int
    levels: Callable[[NDArray], NDArray[np.float64]]
    effects: Callable[[NDArray], NDArray[np.float64]]


def free_levels(at: ModelAt) -> FreeLevels | None:
    r"""Give one variable whose entries sum to zero a mean on which the data do not depend.

    ``pm.ZeroSumNormal`` of :math:`G` levels is sampled as :math:`G - 1` numbers, all of which rows
    of one level read. Where rows read the effects in a sum with an entry that all of them read,
    :math:`\alpha + a_g`, they also read :math:`\alpha' + b_g` with

    .. math:: b_g = a_g + m, \qquad \alpha' = \alpha - m, \qquad m \sim N(0, \sigma^2 / G) .

    The levels :math:`b_g` are independent, :math:`N(0, \sigma^2)`, and of the row-free part only
    what reads :math:`\alpha` depends on them together (parameter expansion).

    Parameters
    ----------
    at : ModelAt
        The split log-density, its variables, and a point at which shapes are read.

    Returns
    -------
    FreeLevels or None
        None where there are no such effects, or no entry is read in a sum with them.

    References
    ----------
    Liu, J. S. and Wu, Y. N. (1999). Parameter expansion for data augmentation. JASA 94(448),
    1264-1274.

    Examples
    --------
    >>> from pymc_austerity.model import ModelAt, split_log_density
    >>> group = np.arange(100) % 5
    >>> with pm.Model() as model:
    ...     mu, a = pm.Normal("mu"), pm.ZeroSumNormal("a", sigma=2.0, shape=5)
    ...     _ = pm.Poisson("y", pm.math.exp(mu + a[group]), observed=group)
    >>> start = model.initial_point()
    >>> found = free_levels(ModelAt(split_log_density(model), model.value_vars, {}, start))
    >>> found.name, found.absorber
    ('a', 'mu')
    >>> found.effects(np.array([0.0, 3.0, 1.0, 1.0, 1.0, 1.0])).round(3)[:1]
    array([1.4])
    """
    effects = [v for v in at.variables if _is_zero_sum(at.likelihood.model, v)]
    if not effects:
        return None
    rows = deduplicated(at.likelihood.rows)
    found = (_Effects(at, variable).freed(rows) for variable in effects)
    return next((free for free in found if free is not None), None)


def _is_zero_sum(model: pm.Model, variable: Variable) -> bool:
    """Whether it is the value variable of one vector of effects."""
    rv = model.values_to_rvs.get(variable)
    return (
        rv is not None
        and variable.type.ndim == 1
        and isinstance(rv.owner.op, ZeroSumNormalRV)
        and isinstance(model.rvs_to_transforms[rv], ZeroSumTransform)
    )


class _Effects:
    """Effects that sum to zero, and the levels that take their place."""

    def __init__(self, at: ModelAt, value: Variable) -> None:
        self.at, self.split, self.value = at, at.likelihood, value
        model, point = self.split.model, at.point
        self.rv = model.values_to_rvs[value]
        self.transform = model.rvs_to_transforms[self.rv]
        self.n_levels = np.size(point[value.name]) + 1
        self.levels = pt.tensor(self.rv.name, dtype=value.dtype, shape=(self.n_levels,))
        self.changed = tuple(self.levels if v is value else v for v in at.variables)
        zeros = np.zeros(self.n_levels, dtype=value.dtype)
        self.point = {n: p for n, p in point.items() if n != value.name} | {self.rv.name: zeros}

    def freed(self, rows: Variable) -> FreeLevels | None:
        """The log-density in terms of the levels, if they can be."""
        terms = [(term.name, term.kind) for term in self.split.evaluated_in_full]
        position = terms.index((self.rv.name, "prior"))
        own, others = self.split.row_free_terms[position], list(self.split.row_free_terms)
        del others[position]
        if position in dict(self.split.joint_terms) or self.value in ancestors(others):
            return None
        uses = self._nodes_of_effects(rows)
        rows = clone_replace(rows, {node: like(self.levels, node) for node in uses})
        if not uses or self.value in ancestors([rows]):
            return None
        scale = self._scale_in(rows)
        found = None if scale is None else self._absorber(rows, scale)
        if scale is None or found is None or found[0] in ancestors([own]):
            return None
        return self._result(rows, position, scale, *found)

    def _nodes_of_effects(self, rows: Variable) -> list[Variable]:
        """Nodes of the row graph that have the effects as their values."""
        nodes = [
            output
            for node in toposort([rows])
            for output in node.outputs
            if output.type.ndim == 1 and self._reads_nothing_else(output)
        ]
        effects = self.transform.backward(self.value, *self.rv.owner.inputs)
        evaluate = interpreted(self.split.model, [self.value], [effects, *nodes])
        if evaluate is None:
            return []
        rng = np.random.default_rng(0)
        at = rng.standard_normal(self.n_levels - 1).astype(self.value.dtype)
        expected, *found = evaluate(at)
        return [v for v, values in zip(nodes, found, strict=True) if are_same(values, expected)]

    def _reads_nothing_else(self, node: Variable) -> bool:
        loose = {v for v in ancestors([node]) if v.owner is None and not hasattr(v, "data")}
        return loose == {self.value}

    def _scale_in(self, rows: Variable) -> Variable | None:
        """Multiplier of the levels in rows: one number, 1 if rows read the levels directly."""
        known = Known(self.changed, self.point)
        products = find_products(rows, [self.levels], self.changed, known)
        if not products:
            return pt.ones((), dtype=self.levels.dtype)
        scale = products[0].scale
        is_one = products[0].side == "entry" and all(scale.type.broadcastable)
        return scale.squeeze() if is_one else None

    # -------------------------------------------------------------- what is read beside them

    def _absorber(self, rows: Variable, scale: Variable) -> tuple[Variable, int] | None:
        """An entry that can fall by as much as all levels rise, and no row changes."""
        inputs = [*self.changed, *(leaf.placeholder for leaf in self.split.leaves)]
        function = interpreted(self.split.model, inputs, [rows, scale])
        if function is None:
            return None
        rng = np.random.default_rng(0)
        start = [np.asarray(self.point[v.name], dtype=v.dtype) for v in self.changed]
        values = jittered(start, _JITTER, rng)
        chosen = rng.permutation(self.split.n_in_model)[:_FEW_ROWS]
        for variable in self.changed:
            if not self._may_absorb(variable):
                continue
            for entry in range(min(np.size(self.point[variable.name]), _MOST_TRIED)):
                if entry % _TRIED_AT_ONCE == 0:
                    end_if_late()
                if self._absorbs(function, values, variable, entry, chosen) and all(
                    self._absorbs(function, values, variable, entry, slice(first, first + _BLOCK))
                    for first in range(0, self.split.n_in_model, _BLOCK)
                ):
                    return variable, entry
        return None

    def _may_absorb(self, variable: Variable) -> bool:
        """Whether it is not an effect, and no prior of effects depends on it."""
        model, joint = self.split.model, dict(self.split.joint_terms)
        if variable.dtype in discrete_types or _is_zero_sum(model, variable):
            return False
        free = {v for v in self.split.value_vars if v not in model.values_to_rvs}
        terms = [term for k, term in enumerate(self.split.row_free_terms) if k not in joint]
        return variable in model.values_to_rvs and not any(
            variable in inside and free & inside for inside in (set(ancestors([t])) for t in terms)
        )

    def _absorbs(
        self,
        function: Callable[..., list],
        values: list[NDArray],
        variable: Variable,
        entry: int,
        rows: Any,
    ) -> bool:
        block = [array[rows] for array in self.split.arrays]
        before, scale = function(*values, *block)
        there = dict(zip(self.changed, map(np.array, values), strict=True))
        there[self.levels] -= _SHIFT
        there[variable].reshape(-1)[entry] += _SHIFT * float(scale)
        after, _ = function(*there.values(), *block)
        return are_same(after, before)

    # -------------------------------------------------------------- the log-density

    def _result(
        self, rows: Variable, position: int, scale: Variable, absorber: Variable, entry: int
    ) -> FreeLevels:
        split, rv = self.split, self.rv
        where = np.zeros(np.shape(self.point[absorber.name]), dtype=absorber.dtype)
        where.reshape(-1)[entry] = 1.0
        mean = self.levels.mean()
        shifted = like(absorber + scale * mean * where, absorber)
        effects = like(self.transform.forward(self.levels - mean, *rv.owner.inputs), self.value)
        (sigma,) = split.model.replace_rvs_by_values([rv.owner.inputs[-2]])
        terms, joint = [], dict(split.joint_terms)
        for number, term in enumerate(split.row_free_terms):
            if number == position:
                term = pm.logp(pm.Normal.dist(0.0, sigma), self.levels)
            elif absorber in ancestors([term]):
                joint.setdefault(number, term)
                term = clone_replace(term, {absorber: shifted})
            terms.append(term)
        likelihood = replace(
            split,
            value_vars=tuple(self.levels if v is self.value else v for v in split.value_vars),
            row_free=sum(term.sum() for term in terms),
            row_free_terms=tuple(terms),
            rows=rows,
            full=clone_replace(split.full, {self.value: effects, absorber: shifted}),
            joint_terms=tuple(joint.items()),
        )
        backward = self.transform.backward(self.value, *rv.owner.inputs)
        undone = {self.levels: effects, absorber: shifted}
        levels = change_of_point(self.at, {self.value: backward})
        at = ModelAt(likelihood, self.changed, {}, self.point)
        effects_of = change_of_point(at, undone)
        return FreeLevels(at, rv.name, str(absorber.name), entry, levels, effects_of)
