"""Products of levels with their scales, and models written in terms of the products."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    DimShuffle,
    Elemwise,
    Mul,
    Subtensor,
    Variable,
    ancestors,
    clone_replace,
    discrete_types,
    indices_of,
    is_dot,
    toposort,
)
from pymc_austerity.model.compiling import evaluated
from pymc_austerity.model.cut import Known
from pymc_austerity.model.cut.known import behind, has_axes_moved
from pymc_austerity.model.rewritten import deduplicated, inverse_of_lower
from pymc_austerity.model.row_likelihood import ModelAt, RowLikelihood


class Product(NamedTuple):
    """How rows read a variable.

    Attributes
    ----------
    factor : variable
        The value variable of z.
    scale : variable
        What it is multiplied by: a factor of every entry, or a square matrix.
    side : {"entry", "left", "right"}
        Whether u is ``scale * z``, ``dot(scale, z)`` or ``dot(z, scale)``.
    uses : dict of variable to variable
        Nodes of the row graph, and what they are where the value variable stands for u.
    triangle : {"", "lower", "upper"}
        Which triangle the matrix is, if it is one.
    size : int
        Rows of the matrix.
    """

    factor: Variable
    scale: Variable
    side: str
    uses: dict[Variable, Variable]
    triangle: str = ""
    size: int = 0

    def forward(self) -> Variable:
        """The product, in terms of the factor."""
        is_entry = self.side == "entry"
        return like(self.scale * self.factor if is_entry else self._dot(self.scale), self.factor)

    def inverse(self) -> Variable:
        """The factor, in terms of the product."""
        is_entry = self.side == "entry"
        factor = self.factor / self.scale if is_entry else self._dot(self._inverse_of_scale())
        return like(factor, self.factor)

    def _dot(self, matrix: Variable) -> Variable:
        left = self.side == "left"
        return pt.dot(matrix, self.factor) if left else pt.dot(self.factor, matrix)

    def log_jacobian(self) -> Variable:
        """Logarithm of the volume of the factor for one of the product, by level."""
        if self.side == "entry":
            return -pt.log(pt.abs(self.scale)) * pt.ones_like(self.factor)
        levels = self.factor[0] if self.side == "left" else self.factor[:, 0]
        if self.triangle:
            log_volume = pt.log(pt.abs(pt.diagonal(self.scale))).sum()
        else:
            log_volume = pt.log(pt.abs(pt.linalg.det(self.scale)))
        return -log_volume * pt.ones_like(levels)

    def _inverse_of_scale(self) -> Variable:
        if self.triangle == "lower":
            return inverse_of_lower(self.scale, self.size)
        if self.triangle == "upper":
            return inverse_of_lower(self.scale.T, self.size).T
        return pt.linalg.inv(self.scale)

    def keeps_shape(self, known: Known) -> bool:
        """Whether the product has the shape of the factor."""
        factor, scale = known.shape(self.factor), known.shape(self.scale)
        if self.side == "entry":
            return len(scale) <= len(factor) and np.broadcast_shapes(factor, scale) == factor
        return scale == (factor[0 if self.side == "left" else 1],) * 2

    def is_reversible(self, known: Known) -> bool:
        """Whether the factor has levels, or its scale one sign.

        Where a scale may be zero, a product with it is, too: no small move would lead from one sign
        to the other, which rows that say little about a number allow.
        """
        return max(known.shape(self.factor), default=1) > 1 or known.keeps_its_sign(self.scale)

    def examined(self, known: Known) -> "Product":
        """The same, knowing whether the scale is a triangular matrix."""
        if self.side == "entry":
            return self
        triangle = ""
        if known.is_lower_triangular(self.scale):
            triangle = "lower"
        elif known.is_lower_triangular(self.scale.T):
            triangle = "upper"
        return self._replace(triangle=triangle, size=known.shape(self.scale)[0])


def like(new: Variable, old: Variable) -> Variable:
    """Of the same type: no axis may become one that is broadcast."""
    return old.type.filter_variable(new.astype(old.dtype), allow_convert=True)


def find_products(
    rows: Variable, candidates: Sequence[Variable], variables: Sequence[Variable], known: Known
) -> list[Product]:
    """Variables that rows read in a product with others only.

    Parameters
    ----------
    rows : variable, shape (m,)
        Log-likelihoods of rows, in which equal nodes are one.
    candidates : sequence of variables
        Value variables that may be factors.
    variables : sequence of variables
        All value variables.
    known : Known
        Evaluates matrices.
    """
    clients: dict[Variable, list] = {}
    for node in toposort([rows]):
        for operand in dict.fromkeys(node.inputs):
            clients.setdefault(operand, []).append(node)
    every = frozenset(variables)
    products = [p for v in candidates if (p := _product_of(v, clients, every)) is not None]
    # one that is scaled by another would have to be undone in the right order
    factors = {p.factor for p in products}
    products = [p for p in products if not factors & set(ancestors([p.scale]))]
    fit = (p for p in products if p.keeps_shape(known) and p.is_reversible(known))
    return [p.examined(known) for p in fit]


def _product_of(
    variable: Variable, clients: Mapping[Variable, list], variables: frozenset[Variable]
) -> Product | None:
    """The product by which rows read a variable, if they read nothing else of it."""
    found = _Reading(variable, clients, variables)
    if not all(map(found.follow, clients.get(variable, []))) or found.scale is None:
        return None
    return Product(variable, found.scale, found.side, found.uses)


class _Reading:
    """Products of a variable that were found so far."""

    def __init__(
        self, variable: Variable, clients: Mapping[Variable, list], variables: frozenset[Variable]
    ) -> None:
        self.variable, self.clients, self.variables = variable, clients, variables
        self.scale: Variable | None = None
        self.key: Any = None
        self.side = "entry"
        self.uses: dict[Variable, Variable] = {}

    def follow(self, node: Any) -> bool:
        """Record how a client uses the variable; tell whether that is such a product."""
        if is_dot(node):
            return self._dot(node, self.variable)
        if isinstance(node.op, DimShuffle) and node.op.new_order == (1, 0):
            turned = node.outputs[0]
            return all(is_dot(n) and self._dot(n, turned) for n in self.clients.get(turned, []))
        if isinstance(node.op, DimShuffle) and node.op.new_order == (0, "x"):
            column = node.outputs[0]
            return all(self._times(n, column, is_whole=True) for n in self.clients.get(column, []))
        if not self.variable.type.ndim and _gives_axes(node):
            return self._picked(node.outputs[0], has_columns=False)
        if isinstance(node.op, (Subtensor, *ADVANCED_SUBTENSOR_OPS)):
            if node.inputs[0] is not self.variable or any(map(self._depends, node.inputs[1:])):
                return False
            return self._picked(node.outputs[0], has_columns=_picks_rows(node))
        return self._times(node, self.variable, is_whole=True)

    def _picked(self, levels: Variable, *, has_columns: bool) -> bool:
        """Products of levels of rows, which may have been given axes."""
        return all(
            self._picked(n.outputs[0], has_columns=False)
            if _gives_axes(n)
            else self._times(n, levels, has_columns=has_columns)
            for n in self.clients.get(levels, [])
        )

    def _depends(self, variable: Variable) -> bool:
        return not self.variables.isdisjoint(ancestors([variable]))

    def _reads_data(self, variable: Variable) -> bool:
        """Whether anything but parameters and constants is read."""
        loose = (v for v in ancestors([variable]) if v.owner is None and not hasattr(v, "data"))
        return not self.variables.issuperset(loose)

    def _dot(self, node: Any, operand: Variable) -> bool:
        """A product of matrices, of the variable or of its transpose."""
        left, right = node.inputs
        is_first, is_transposed = left is operand, operand is not self.variable
        scale = right if is_first else left
        if (left.type.ndim, right.type.ndim) != (2, 2) or left is right or not self._scales(scale):
            return False
        inside = self.variable.T if is_transposed else self.variable
        self.uses[node.outputs[0]] = like(inside, node.outputs[0])
        side = "right" if is_first != is_transposed else "left"
        return self._is_same([scale], side, transposed=is_transposed)

    def _scales(self, variable: Variable) -> bool:
        """Whether parameters alone, without data of rows, determine a variable."""
        return self._depends(variable) and not self._reads_data(variable)

    def _times(
        self, node: Any, operand: Variable, *, is_whole: bool = False, has_columns: bool = False
    ) -> bool:
        """Products with parameters; factors that are data stay where they are.

        Where the operand has all entries of the variable, each may have a scale of its own; where
        it has rows of the variable, each column may.
        """
        scales: list[Variable] = []
        inside = operand
        while _is_product(node):
            others = [v for v in node.inputs if v is not operand]
            own = [v for v in others if self._depends(v)]
            fit = all(
                all(v.type.broadcastable)
                or (is_whole and self._is_by_entry(v))
                or (has_columns and v.type.broadcastable[0])
                for v in own
            )
            if len(others) < len(node.inputs) - 1 or not fit or not all(map(self._scales, own)):
                break
            data = [v for v in others if v not in own]
            scales += own
            inside = pt.mul(inside, *data) if data else inside
            operand, is_whole = node.outputs[0], is_whole and not data
            following = self.clients.get(operand, [])
            if len(following) != 1:
                break
            (node,) = following
        if not scales:
            return False
        self.uses[operand] = like(inside, operand)
        return self._is_same(scales, "entry")

    def _is_by_entry(self, scale: Variable) -> bool:
        """Whether a factor of all entries has no axes but those of the variable."""
        return scale.type.ndim <= self.variable.type.ndim or scale.type.broadcastable[-1]

    def _is_same(self, scales: list[Variable], side: str, *, transposed: bool = False) -> bool:
        dims = self.variable.type.ndim
        scales = [v if v.type.ndim <= dims else _of_column(v) for v in map(_without_axes, scales)]
        key = (side, transposed, sorted(map(id, scales)))
        if self.scale is None:
            self.key, self.side = key, side
            self.scale = pt.mul(*scales) if len(scales) > 1 else scales[0]
            self.scale = self.scale.T if transposed else self.scale
        return bool(self.key == key)


def _picks_rows(node: Any) -> bool:
    """Whether a node picks rows of a matrix by a vector of numbers."""
    if not isinstance(node.op, ADVANCED_SUBTENSOR_OPS) or node.inputs[0].type.ndim != 2:
        return False
    index, *others = indices_of(node)
    is_vector = isinstance(index, Variable) and index.type.ndim == 1 and index.type.dtype != "bool"
    return is_vector and all(i == slice(None) for i in others)


def _gives_axes(node: Any) -> bool:
    """Whether a node gives an array axes of length one, and nothing else."""
    return isinstance(node.op, DimShuffle) and [
        axis for axis in node.op.new_order if axis != "x"
    ] == list(range(node.inputs[0].type.ndim))


def _is_product(node: Any) -> bool:
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Mul)


def _without_axes(scale: Variable) -> Variable:
    """A number as a scalar, however often it has been given axes."""
    if not all(scale.type.broadcastable):
        return scale
    scale = behind(scale, has_axes_moved)
    return scale.squeeze() if scale.type.ndim else scale


def _of_column(scale: Variable) -> Variable:
    """A matrix of one column as a vector."""
    node = scale.owner
    if node is not None and isinstance(node.op, DimShuffle) and node.op.new_order == (0, "x"):
        return node.inputs[0]
    return scale[:, 0]


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


def centered(at: ModelAt) -> Centered | None:
    r"""Write the levels of non-centered factors in terms of the products that rows read.

    In ``mu + tau * z[group]`` rows depend on ``z`` and ``tau`` through their product alone. In
    terms of :math:`u = \tau z` they are functions of a linear predictor, and the scale is read
    by no row:

    .. math:: \log p(u | \tau) = \log p_z(u / \tau) - \log |\tau|

    Parameters
    ----------
    at : ModelAt
        The split log-density, its variables, and a point at which shapes are read.

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
    >>> from pymc_austerity.model import ModelAt, split_log_density
    >>> group = np.arange(100) % 5
    >>> with pm.Model() as model:
    ...     tau, z = pm.HalfNormal("tau"), pm.Normal("z", shape=5)
    ...     _ = pm.Poisson("y", pm.math.exp(tau * z[group]), observed=group)
    >>> start = model.initial_point()
    >>> found = centered(ModelAt(split_log_density(model), model.value_vars, {}, start))
    >>> found.names
    ('z',)
    >>> found.products(np.array([np.log(2.0), 1.0, 2.0, 3.0, 4.0, 5.0])).round(3)
    array([ 0.693,  2.   ,  4.   ,  6.   ,  8.   , 10.   ])
    """
    split, candidates = at.likelihood, _candidates(at)
    if not candidates:
        return None
    rows = deduplicated(split.rows)
    products = find_products(rows, candidates, at.variables, Known(split.value_vars, at.point))
    if not products:
        return None
    undone = {p.factor: p.inverse() for p in products}
    jacobians = [p.log_jacobian() for p in products]
    likelihood = replace(
        split,
        row_free=pt.add(clone_replace(split.row_free, undone), *(term.sum() for term in jacobians)),
        row_free_terms=(*clone_replace(list(split.row_free_terms), undone), *jacobians),
        rows=clone_replace(rows, {k: v for p in products for k, v in p.uses.items()}),
        full=clone_replace(split.full, undone),
        joint_terms=tuple((k, clone_replace(term, undone)) for k, term in split.joint_terms),
    )
    names = tuple(str(p.factor.name) for p in products)
    done = {p.factor: p.forward() for p in products}
    there, back = (change_of_point(at, change) for change in (done, undone))
    return Centered(likelihood, names, there, back)


def _candidates(at: ModelAt) -> list[Variable]:
    """Numbers and arrays of numbers that are not transformed."""
    model = at.likelihood.model
    rvs, transforms = model.values_to_rvs, model.rvs_to_transforms
    return [
        v
        for v in at.variables
        if v.type.ndim <= 2 and v.dtype not in discrete_types and transforms.get(rvs.get(v)) is None
    ]


def change_of_point(
    at: ModelAt, changed: Mapping[Variable, Variable]
) -> Callable[[NDArray], NDArray[np.float64]]:
    """A function of the raveled point that changes some variables."""
    parts = [changed.get(v, v).ravel().astype("float64") for v in at.variables]
    (joined,), theta = at.joined(pt.concatenate(parts))
    return evaluated(at.likelihood.model, [theta], joined)
