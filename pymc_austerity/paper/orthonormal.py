"""Matrices with orthonormal columns: their uniform distribution, and random rotations of them."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.linalg import expm

from pymc_austerity._pymc import SymbolicRandomVariable, change_dist_size
from pymc_austerity.arguments import (
    checked_count,
    checked_fraction,
    checked_number,
    checked_target_acceptance,
)
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.adaptation import ScaleSearch, usual_acceptance
from pymc_austerity.proposals.protocols import Block, GaussianApproximation, Layout, Outcome

_LARGEST = math.pi
"""Standard deviation of the angles, radians, above which rotations are about uniform."""


class UniformStiefelRV(SymbolicRandomVariable):
    """The orthonormal factor of a matrix of standard normal numbers, as a PyTensor variable."""

    extended_signature = "(n,p)->(n,p)"
    _print_name = ("UniformStiefel", "\\operatorname{UniformStiefel}")
    orthonormal = True
    special_moves = (
        "orthonormal columns, which the default proposals would not keep: "
        "use AusterityMH(vars=[{name!r}], proposal=StiefelProposal())."
    )

    @classmethod
    def rv_op(cls, normal: Any, *, size: Any = None) -> Any:
        """Build the variable from the normal one."""
        if size is not None:
            normal = change_dist_size(normal, (*size, *normal.shape[-2:]))
        q, r = pt.linalg.qr(normal, mode="economic")
        # with a positive diagonal of r the factors are unique, and q has no preferred signs
        signs = pt.sign(pt.diagonal(r, axis1=-2, axis2=-1))
        return cls(inputs=[normal], outputs=[q * signs[..., None, :]])(normal)


class UniformStiefel(pm.Continuous):
    r"""Uniform distribution on the Stiefel manifold, the matrices with orthonormal columns.

    .. math:: \{W \in \mathbb{R}^{n \times p} : W'W = I_p\}, \qquad p \le n

    The distribution does not change when :math:`W` is multiplied by an orthogonal matrix from
    either side. With :math:`p = n`, these are all orthogonal matrices, of both determinants; with
    :math:`p = 1`, it is the unit sphere. The log-density, with respect to the surface (Hausdorff)
    measure in :math:`\mathbb{R}^{n \times p}`, is minus the logarithm of the area

    .. math:: 2^{p (p - 1) / 4} \, 2^p \pi^{np/2} / \Gamma_p(n/2)

    on the manifold and minus infinity off it. For another density on the manifold, add a
    ``pm.Potential`` to this prior.

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, optional
        Number of columns, at most `n`; by default `n`.

    Raises
    ------
    SettingError, SettingTypeError
        The numbers of rows and columns cannot be used.

    Notes
    -----
    The variable has no unconstrained form: NUTS and other samplers of PyMC cannot update it. Sample
    it with ``AusterityMH(vars=["W"], proposal=StiefelProposal())``.

    References
    ----------
    Muirhead, R. J. (1982). Aspects of Multivariate Statistical Theory, theorem 2.1.15. (Its
    measure is that of the surface without the factor ``2**(p (p - 1) / 4)``.)
    Mezzadri, F. (2007). How to generate random matrices from the classical compact groups.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.paper import UniformStiefel
    >>> with pm.Model():
    ...     W = UniformStiefel("W", n=4, p=2)
    >>> draw = pm.draw(W, random_seed=1)
    >>> draw.shape, bool(np.allclose(draw.T @ draw, np.eye(2)))
    ((4, 2), True)
    """

    rv_type = UniformStiefelRV
    rv_op = UniformStiefelRV.rv_op

    @classmethod
    def dist(cls, n: int, p: int | None = None, **kwargs: Any) -> Any:
        """Create the variable without a model."""
        n = checked_count("n", n, what="a size of the matrix")
        p = n if p is None else checked_count("p", p, what="a size of the matrix")
        if p > n:
            raise SettingError(
                f"p={p} columns cannot be orthonormal in n={n} dimensions: give p of at most n."
            )
        return super().dist([pm.Normal.dist(0.0, 1.0, shape=(n, p))], **kwargs)

    def support_point(rv: Any, normal: Any) -> Any:
        """Ones on the diagonal, zeros elsewhere."""
        return pt.zeros(rv.shape) + pt.eye(*rv.shape[-2:])

    def logp(value: Any, normal: Any) -> Any:
        """Minus the logarithm of the area of the manifold; minus infinity off it."""
        n, p = value.shape[-2:]
        gram = pt.swapaxes(value, -1, -2) @ value
        tolerance = 1e-6 if value.dtype == "float64" else 1e-3
        distance = pt.max(pt.abs(gram - pt.eye(p)), axis=(-2, -1))
        return pt.switch(pt.lt(distance, tolerance), -_log_area(n, p), -math.inf)

    def change_dist_size(rv: Any, new_size: Any, expand: bool) -> Any:
        """Resize the variable, for PyMC."""
        (normal,) = rv.owner.inputs
        size = (*new_size, *rv.shape[:-2]) if expand else tuple(new_size)
        return UniformStiefelRV.rv_op(normal, size=size)


def _log_area(n: Any, p: Any) -> Any:
    log_multigamma = p * (p - 1) / 4 * math.log(math.pi) + pt.sum(
        pt.gammaln((n - pt.arange(p)) / 2)
    )
    log_two = (p * (p - 1) / 4 + p) * math.log(2.0)
    return log_two + n * p / 2 * math.log(math.pi) - log_multigamma


class StiefelWalkState(NamedTuple):
    """State of a walk.

    Attributes
    ----------
    blocks : tuple of Block
        Positions of the matrices in the point.
    target_acceptance : float
        Acceptance rate to which the scale is tuned.
    search : ScaleSearch
        Standard deviation of the angles.
    reflected : bool
        Whether the last proposal was also a reflection, which does not count for the scale.
    """

    blocks: tuple[Block, ...]
    target_acceptance: float
    search: ScaleSearch
    reflected: bool = False


@dataclass(frozen=True)
class StiefelProposal:
    r"""Random rotations of matrices with orthonormal columns, symmetric.

    .. math:: W' = \exp(A) \, W, \qquad A = -A', \quad A_{ij} \sim N(0, h^2) \text{ for } i > j

    :math:`\exp(A)` and its inverse have the same distribution, so the walk leaves the uniform
    distribution on the Stiefel manifold invariant. During tuning, :math:`h` is adapted to
    the usual acceptance rate. The variables of the step method must have a `UniformStiefel` prior.

    Parameters
    ----------
    scaling : float
        Initial value of :math:`h`, radians; at most pi.
    target_acceptance : float or "auto"
        Acceptance rate to which the scale is tuned; "auto" is 0.44 for a manifold of one dimension,
        falling to 0.234 for five and more.
    reflect : float
        Share of the moves of square matrices, in [0, 1], that change the sign of a column as well.
        Rotations alone never pass from determinant 1 to -1. Matrices with fewer columns than rows
        need no reflections, so they are not reflected.

    Raises
    ------
    SettingError
        A setting cannot be used.

    Notes
    -----
    Rounding errors do not accumulate: every proposal takes a Newton step towards the nearest
    orthonormal matrix, :math:`W \leftarrow W (3 I - W'W) / 2`, which squares its distance from the
    manifold.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land, section 6.2, after
    Ouyang, Z. (2008). Bayesian Additive Regression Kernels. Thesis, Duke University.
    Higham, N. J. (2008). Functions of Matrices, section 8.3: the Newton-Schulz iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.paper import StiefelProposal
    >>> from pymc_austerity.proposals import Block, Layout
    >>> layout = Layout(np.zeros(6, dtype=int), (Block("W", (3, 2), 0, orthonormal=True),))
    >>> walk = StiefelProposal(scaling=0.5)
    >>> new, log_ratio, state = walk.propose(
    ...     walk.init(layout), np.eye(3, 2).ravel(), np.random.default_rng(1)
    ... )
    >>> W = new.reshape(3, 2)
    >>> bool(np.allclose(W.T @ W, np.eye(2))), log_ratio
    (True, 0.0)
    """

    scaling: float = 0.1
    target_acceptance: float | Literal["auto"] = "auto"
    reflect: float = 0.1

    unconstrained: ClassVar[bool] = False
    """No normal approximation fits the coordinates in which this proposal moves."""

    def __post_init__(self) -> None:
        checked_number(
            "scaling",
            self.scaling,
            lambda angle: 0.0 < angle <= _LARGEST,
            "a size of angles",
            "a number of radians between 0 and pi",
        )
        checked_target_acceptance(self.target_acceptance)
        checked_fraction("reflect", self.reflect, 1.0, "a share")

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> StiefelWalkState:
        """Initial state, with the positions of the matrices."""
        others = [block.name for block in layout.blocks if not block.orthonormal]
        if others or not layout.blocks:
            raise SettingError(
                f"StiefelProposal cannot move {', '.join(map(repr, others)) or 'this point'}: give "
                "it only variables with a UniformStiefel prior, with vars=[...], and the others to "
                "another step method in pm.sample(step=[...])."
            )
        n_dimensions = sum(map(_dimension, layout.blocks))
        target = checked_target_acceptance(self.target_acceptance)
        target = target or usual_acceptance(n_dimensions)
        return StiefelWalkState(layout.blocks, target, ScaleSearch.begin(self.scaling, _LARGEST))

    def propose(
        self, state: StiefelWalkState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, StiefelWalkState]:
        """New point, the log-ratio 0, and whether there was a reflection."""
        reflected = False
        new = np.empty(point.size)
        for block in state.blocks:
            matrices = _rotated(block, point, state.search.scale, rng)
            if block.shape[-2] == block.shape[-1]:
                signs = _random_signs(block.shape, self.reflect, rng)
                reflected |= bool((signs < 0.0).any())
                matrices = matrices * signs
            new[block.entries] = matrices.ravel()
        new = new.astype(point.dtype, copy=False)
        return new, 0.0, state._replace(reflected=reflected)

    def disperse(
        self, layout: Layout, point: NDArray, radius: float, rng: np.random.Generator
    ) -> NDArray:
        """Start of a chain: rotated by angles with a standard deviation of `radius` radians."""
        matrices = [_rotated(block, point, radius, rng) for block in layout.blocks]
        return np.concatenate([matrix.ravel() for matrix in matrices])

    def tune(self, state: StiefelWalkState, outcome: Outcome) -> StiefelWalkState:
        """One step of the search for the scale."""
        if state.reflected:
            return state
        return state._replace(search=state.search.step(outcome.accepted, state.target_acceptance))

    def freeze(self, state: StiefelWalkState) -> StiefelWalkState:
        """The average scale, and no more learning."""
        return state._replace(search=state.search.end())

    def current_scaling(self, state: StiefelWalkState) -> float:
        """Standard deviation of the angles, radians."""
        return state.search.scale


def _dimension(block: Block) -> int:
    *stack, n, p = block.shape
    return math.prod(stack) * (n * p - p * (p + 1) // 2)


def _rotated(
    block: Block, point: NDArray, scale: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    matrices = point[block.entries].reshape(block.shape).astype(np.float64)
    *stack, n, p = block.shape
    below = np.tril(rng.normal(0.0, scale, size=(*stack, n, n)), -1)
    rotated = expm(below - np.swapaxes(below, -1, -2)) @ matrices
    gram = np.swapaxes(rotated, -1, -2) @ rotated
    return rotated @ (1.5 * np.eye(p) - 0.5 * gram)


def _random_signs(
    shape: tuple[int, ...], share: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Signs of the columns: one of them -1 in a share of the matrices."""
    *stack, _, p = shape
    column = rng.integers(p, size=(*stack, 1, 1))
    reflected = rng.random((*stack, 1, 1)) < share
    return np.where(reflected & (np.arange(p) == column), -1.0, 1.0)
