"""A random walk on matrices with orthonormal columns."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from pymc_austerity.arguments import checked_fraction, checked_number, checked_rate
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.adaptation import ScaleSearch, usual_acceptance
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Block, Layout
from pymc_austerity.proposals.protocols import Outcome

__all__ = ["StiefelProposal", "StiefelWalkState"]

_LARGEST = math.pi
"""Standard deviation of the angles, radians, above which rotations are about uniform."""


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
    target_acceptance : float, optional
        Acceptance rate to which the scale is tuned; by default 0.44 for a manifold of one
        dimension, falling to 0.234 for five and more.
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
    >>> from pymc_austerity.orthonormal import StiefelProposal
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
    target_acceptance: float | None = None
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
        if self.target_acceptance is not None:
            checked_rate("target_acceptance", self.target_acceptance)
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
        target = self.target_acceptance or usual_acceptance(n_dimensions)
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
