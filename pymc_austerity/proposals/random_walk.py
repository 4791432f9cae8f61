"""The random walk, with a scale and a covariance that it learns while tuning."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.arguments import checked_positive, checked_rate
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.adaptation import (
    ScaleSearch,
    covariance_estimate,
    optimal_scaling,
    usual_acceptance,
)
from pymc_austerity.proposals.covariance import checked_covariance, root_of
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.integers import integer_moves
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.path import Path
from pymc_austerity.proposals.protocols import Outcome

__all__ = ["RandomWalkProposal", "RandomWalkState"]

_FIRST_WINDOW = 50


class RandomWalkState(NamedTuple):
    """State of a random walk.

    Attributes
    ----------
    n_categories : int array, shape (d,)
        See `Layout`.
    root : float array, shape (d,) or (d, d)
        Standard deviations, or the lower Cholesky factor of the covariance.
    search : ScaleSearch
        Factor on `root`, and its average over the current window, which becomes the factor when
        tuning ends.
    window : int
        Length of the current window, in steps; each is twice as long as the one before.
    path : Path
        The chain in the current window.
    """

    n_categories: NDArray[np.int64]
    root: NDArray[np.float64]
    search: ScaleSearch
    window: int = _FIRST_WINDOW
    path: Path = Path()


@dataclass(frozen=True, eq=False)
class RandomWalkProposal:
    r"""Normal steps around the current point, symmetric.

    .. math:: \theta' = \theta + h L \xi, \qquad \xi \sim N(0, I), \quad L L' = \Sigma

    While the chain tunes, :math:`h` follows a Robbins-Monro recursion towards the usual
    acceptance rate, and :math:`\Sigma` is estimated anew at the end of windows of 50, 100, 200,
    400, ... steps from the chain in that window. Both are frozen when tuning ends. Integer
    entries take rounded steps; binary and categorical ones change category.

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
    >>> point, log_ratio, state = walk.propose(state, np.zeros(2), np.random.default_rng(1))
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
        """State with the given covariance, else that of the approximation, else unit covariance."""
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
        return RandomWalkState(layout.n_categories, root, ScaleSearch.begin(scaling))

    def propose(
        self, state: RandomWalkState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, RandomWalkState]:
        """New point, the log-ratio 0, and the same state."""
        scaling = state.search.scale
        normal = rng.standard_normal(point.size)
        moves = state.root.dot(normal) if state.root.ndim == 2 else state.root * normal
        moves *= scaling
        if state.n_categories.any():
            sds = state.root if state.root.ndim == 1 else np.linalg.norm(state.root, axis=1)
            moves = integer_moves(moves, scaling * sds, point, state.n_categories, scaling, rng)
        return (point + moves).astype(point.dtype, copy=False), 0.0, state

    def tune(self, state: RandomWalkState, outcome: Outcome) -> RandomWalkState:
        """One Robbins-Monro step on the scale; at the end of a window, a new covariance."""
        point = outcome.following
        target = self.target_acceptance or usual_acceptance(point.size)
        search = state.search.step(outcome.accepted, target)
        if not isinstance(self.covariance, str):
            return state._replace(search=search)
        state = state._replace(search=search, path=state.path.append(point))
        return state if search.n_steps < state.window else self._learn_covariance(state)

    def _learn_covariance(self, state: RandomWalkState) -> RandomWalkState:
        points, window = state.path.to_array(), 2 * state.window
        covariance = covariance_estimate(points, full=self.covariance == "full")
        if covariance is None:  # go on with the old shape and the scale found for it
            search = state.search._replace(n_steps=0)
            return state._replace(search=search, window=window, path=Path())
        search = ScaleSearch.begin(optimal_scaling(points.shape[1]))
        return RandomWalkState(state.n_categories, root_of(covariance), search, window)

    def freeze(self, state: RandomWalkState) -> RandomWalkState:
        """The average scale of the last window, and no more learning."""
        return state._replace(search=state.search.end(), path=Path())

    def current_scaling(self, state: RandomWalkState) -> float:
        """Factor on the standard deviations."""
        return state.search.scale


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
