"""The random walk, with a scale and a covariance that it learns while tuning."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.arguments import checked_positive, checked_rate
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.adaptation import (
    covariance_estimate,
    learning_rate,
    optimal_scaling,
    usual_acceptance,
)
from pymc_austerity.proposals.covariance import checked_covariance, root_of
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.integers import integer_moves
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome

__all__ = ["RandomWalkProposal", "RandomWalkState"]

_FIRST_WINDOW = 50


@dataclass
class RandomWalkState:
    """What a random walk has learnt.

    Attributes
    ----------
    n_categories : int array, shape (d,)
        See `Layout`.
    root : float array, shape (d,) or (d, d)
        Standard deviations, or the lower Cholesky factor of the covariance.
    log_scale : float
        Log of the factor on `root`.
    mean_log_scale : float
        Its average over the current window, which becomes the scale when tuning ends.
    n_steps : int
        Tuning steps in the current window.
    window : int
        Length of the current window, in steps; each is twice as long as the one before.
    points : list of arrays, each of shape (d,)
        The chain in the current window.
    """

    n_categories: NDArray[np.int64]
    root: NDArray[np.float64]
    log_scale: float
    mean_log_scale: float
    n_steps: int = 0
    window: int = _FIRST_WINDOW
    points: list[NDArray] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class RandomWalkProposal:
    r"""Normal steps around the current point, symmetric.

    .. math:: \theta' = \theta + h L \xi, \qquad \xi \sim N(0, I), \quad L L' = \Sigma

    While the chain tunes, :math:`h` follows a Robbins-Monro recursion towards the usual
    acceptance rate, and :math:`\Sigma` is estimated anew at the end of windows of 50, 100, 200,
    400, ... steps from the chain in that window. Both are frozen when tuning ends. Integer
    entries take rounded steps, binary and categorical ones change category.

    Parameters
    ----------
    covariance : {"full", "diagonal"} or array, shape (d,) or (d, d)
        What to learn; or the variances or the covariance to use as they are, in unconstrained
        space.
    scaling : float, optional
        :math:`h` at the start; by default :math:`2.38/\sqrt d`.
    target_acceptance : float, optional
        Acceptance rate that the scale is tuned to; by default 0.44 for one dimension, falling
        to 0.234 for five and more.

    References
    ----------
    Haario, H., Saksman, E. and Tamminen, J. (2001). An adaptive Metropolis algorithm.
    Andrieu, C. and Thoms, J. (2008). A tutorial on adaptive MCMC.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.proposals import Layout, RandomWalkProposal
    >>> walk = RandomWalkProposal(covariance=[0.01, 0.04], scaling=1.0)
    >>> state = walk.init(Layout.continuous(2))
    >>> point, log_ratio = walk.propose(state, np.zeros(2), np.random.default_rng(1))
    >>> point.round(3), log_ratio
    (array([0.035, 0.164]), 0.0)
    """

    covariance: Literal["full", "diagonal"] | ArrayLike = "full"
    scaling: float | None = None
    target_acceptance: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", _checked_covariance(self.covariance))
        if self.scaling is not None:
            checked_positive("scaling", self.scaling, "a size")
        if self.target_acceptance is not None:
            checked_rate("target_acceptance", self.target_acceptance)

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> RandomWalkState:
        """The covariance that was given, else that of the approximation, else unit covariance."""
        n_entries = layout.n_entries
        scaling = self.scaling or optimal_scaling(n_entries)
        if isinstance(self.covariance, str):
            root = np.ones(n_entries) if approximation is None else approximation.root
            if self.covariance == "diagonal" and root.ndim == 2:
                root = np.linalg.norm(root, axis=1)
        else:
            covariance = np.asarray(self.covariance)
            if covariance.shape[0] != n_entries:
                raise SettingError(
                    f"covariance of shape {covariance.shape} does not fit: the variables of this "
                    f"step method have {n_entries} entries in unconstrained space; give one "
                    "variance or one row and column for each."
                )
            root = root_of(covariance)
        return RandomWalkState(layout.n_categories, root, math.log(scaling), math.log(scaling))

    def propose(
        self, state: RandomWalkState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float]:
        """New point and the log-ratio 0."""
        scaling = math.exp(state.log_scale)
        normal = rng.standard_normal(point.size)
        moves = state.root.dot(normal) if state.root.ndim == 2 else state.root * normal
        moves *= scaling
        if state.n_categories.any():
            sds = state.root if state.root.ndim == 1 else np.linalg.norm(state.root, axis=1)
            moves = integer_moves(moves, scaling * sds, point, state.n_categories, scaling, rng)
        return (point + moves).astype(point.dtype, copy=False), 0.0

    def tune(self, state: RandomWalkState, outcome: Outcome) -> RandomWalkState:
        """One Robbins-Monro step on the scale; at the end of a window, a new covariance."""
        point = outcome.following
        target = self.target_acceptance or usual_acceptance(point.size)
        state.n_steps += 1
        state.log_scale += learning_rate(state.n_steps) * (outcome.accepted - target)
        # weights grow linearly: where the recursion began counts least
        state.mean_log_scale += (state.log_scale - state.mean_log_scale) * 2 / (state.n_steps + 1)
        if not isinstance(self.covariance, str):
            return state
        state.points.append(point)
        if state.n_steps < state.window:
            return state
        return self._learn_covariance(state)

    def _learn_covariance(self, state: RandomWalkState) -> RandomWalkState:
        points = np.asarray(state.points, dtype=np.float64)
        covariance = covariance_estimate(points, full=self.covariance == "full")
        fresh = replace(state, n_steps=0, window=2 * state.window, points=[])
        if covariance is None:  # go on with the old shape and the scale found for it
            return fresh
        log_scale = math.log(optimal_scaling(points.shape[1]))
        root = root_of(covariance)
        return replace(fresh, root=root, log_scale=log_scale, mean_log_scale=log_scale)

    def freeze(self, state: RandomWalkState) -> RandomWalkState:
        """The average scale of the last window, and no more learning."""
        return replace(state, log_scale=state.mean_log_scale, points=[])

    def current_scaling(self, state: RandomWalkState) -> float:
        """Factor on the standard deviations."""
        return math.exp(state.log_scale)


def _checked_covariance(
    covariance: Literal["full", "diagonal"] | ArrayLike,
) -> Literal["full", "diagonal"] | NDArray[np.float64]:
    if isinstance(covariance, str):
        if covariance == "full":
            return "full"
        if covariance == "diagonal":
            return "diagonal"
        raise SettingError(
            f"covariance={covariance!r} is not known: use 'full', 'diagonal' or an array."
        )
    return checked_covariance("covariance", covariance, "'full', 'diagonal'")
