"""Normal moves: Crank-Nicolson about an approximation, and random walks of all entries."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.arguments import (
    checked_choice,
    checked_number,
    checked_positive,
    checked_target_acceptance,
    unless_auto,
)
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.adaptation import (
    Path,
    ScaleSearch,
    covariance_estimate,
    optimal_scaling,
    usual_acceptance,
)
from pymc_austerity.proposals.protocols import (
    GaussianApproximation,
    Layout,
    Outcome,
    Proposal,
    checked_covariance,
    fitting_root,
    root_of,
)


@dataclass(frozen=True)
class CrankNicolsonProposal:
    r"""Moves that would always be accepted if the normal approximation were right.

    .. math::
        \theta' = \theta^* + \sqrt{1 - b^2} (\theta - \theta^*) + b L \xi, \qquad \xi \sim N(0, I)

    with log-ratio :math:`\log N(\theta; \theta^*, L L') - \log N(\theta'; \theta^*, L L')`. With
    :math:`b = 1` this is the independence sampler. It moves badly in tails that are heavier than
    normal: mix it with a `RandomWalkProposal`.

    Parameters
    ----------
    b : float
        Size of the move, in (0, 1].

    References
    ----------
    Cotter, S. L., Roberts, G. O., Stuart, A. M. and White, D. (2013). MCMC methods for functions.
    Statistical Science 28(3), 424-446.
    """

    b: float = 1.0

    def __post_init__(self) -> None:
        checked_number(
            "b", self.b, lambda b: 0.0 < b <= 1.0, "the size of a move", "a number in (0, 1]"
        )

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> GaussianApproximation:
        """The approximation itself, which does not change."""
        if approximation is None:
            raise SettingError(
                "CrankNicolsonProposal, which ProposalMixture() includes, needs the normal "
                "approximation of the posterior that comes with control variates, and there are "
                "none here: use RandomWalkProposal(), or AusterityMH with control variates."
            )
        return approximation

    def propose(
        self, state: GaussianApproximation, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, GaussianApproximation]:
        """New point, the log-ratio, and the same state."""
        noise = state.root.dot(rng.standard_normal(point.size))
        kept = math.sqrt(1.0 - self.b * self.b)
        new = state.mean + kept * (point - state.mean) + self.b * noise
        new = new.astype(point.dtype, copy=False)
        return new, state.log_density(point) - state.log_density(new), state

    def tune(self, state: GaussianApproximation, outcome: Outcome) -> GaussianApproximation:
        """Nothing to learn."""
        return state

    def freeze(self, state: GaussianApproximation) -> GaussianApproximation:
        """Nothing to freeze."""
        return state

    def current_scaling(self, state: GaussianApproximation) -> float:
        """Size of the move."""
        return self.b


class Conditional(NamedTuple):
    r"""Normal distribution of some entries of a point, given the others.

    Attributes
    ----------
    approximation : GaussianApproximation
        Distribution with the others at their means.
    gain : float array, shape (k, d - k)
        :math:`K` in the mean :math:`m_o + K (x_r - m_r)`.
    """

    approximation: GaussianApproximation
    gain: NDArray[np.float64]


def conditional(
    joint: GaussianApproximation, own: NDArray[np.intp], rest: NDArray[np.intp]
) -> Conditional:
    r"""Distribution of the entries `own` given the entries `rest`.

    With the precision :math:`P`, the covariance is :math:`P_{oo}^{-1}` and
    :math:`K = -P_{oo}^{-1} P_{or}`.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.proposals import GaussianApproximation, conditional
    >>> root = np.linalg.cholesky([[1.0, 0.8], [0.8, 1.0]])
    >>> given = conditional(GaussianApproximation(np.zeros(2), root), np.array([0]), np.array([1]))
    >>> given.gain.round(3), given.approximation.root.round(3)
    (array([[0.8]]), array([[0.6]]))
    """
    if not rest.size:
        return Conditional(joint, np.zeros((own.size, 0)))
    precision = joint.inverse_root.T @ joint.inverse_root
    covariance = np.linalg.inv(precision[np.ix_(own, own)])
    gain = -covariance @ precision[np.ix_(own, rest)]
    root = np.linalg.cholesky((covariance + covariance.T) / 2).astype(np.float64, copy=False)
    return Conditional(GaussianApproximation(joint.mean[own], root), gain)


_SMALLEST_SD = 0.5
"""Below this, a rounded normal step would hardly ever move."""

_FIRST_WINDOW = 50


def _integer_moves(
    moves: NDArray[np.float64],
    sds: NDArray[np.float64],
    point: NDArray,
    n_categories: NDArray[np.int64],
    scaling: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Turn the real moves of integer entries into symmetric integer ones.

    Integers move by the rounded real move (as ``pymc.Metropolis``). Each binary or categorical
    entry changes with probability ``1 - 0.5**scaling`` (as ``pymc.BinaryMetropolis``), to each of
    the other categories with the same probability (as ``pymc.CategoricalGibbsMetropolis`` with
    its uniform proposal).

    Parameters
    ----------
    moves : float array, shape (d,)
        Normal moves; those of real entries are returned unchanged.
    sds : float array, shape (d,)
        Their standard deviations; those of integers are raised to at least 0.5.
    point : array, shape (d,)
        Where the move starts.
    n_categories : int array, shape (d,)
        See `Layout`.
    scaling : float
        Size of the proposal.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float array, shape (d,)
    """
    integer = n_categories > 0
    moves = np.where(integer, np.round(moves * np.maximum(1.0, _SMALLEST_SD / sds)), moves)
    categorical = np.flatnonzero(n_categories > 1)
    if categorical.size:
        changed = rng.random(categorical.size) < 1.0 - 0.5**scaling
        k = n_categories[categorical]
        shift = rng.integers(1, k)
        old = point[categorical].astype(np.int64)
        moves[categorical] = np.where(changed, (old + shift) % k - old, 0)
    return moves


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
    scaling : float or "auto"
        :math:`h` at the start; "auto" is :math:`2.38/\sqrt d`.
    target_acceptance : float or "auto"
        Acceptance rate that the scale is tuned to; "auto" is 0.44 for one dimension, falling to
        0.234 for five and more.

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
    scaling: float | Literal["auto"] = "auto"
    target_acceptance: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.covariance, str):
            checked_choice("covariance", self.covariance, ("full", "diagonal"))
        else:
            matrix = checked_covariance("covariance", self.covariance, "'full', 'diagonal'")
            object.__setattr__(self, "covariance", matrix)
        scaling = unless_auto("scaling", self.scaling)
        if scaling is not None:
            checked_positive("scaling", scaling, "'auto' or a size")
        checked_target_acceptance(self.target_acceptance)

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> RandomWalkState:
        """State with the given covariance, else that of the approximation, else unit covariance."""
        n_entries = layout.n_entries
        scaling = unless_auto("scaling", self.scaling) or optimal_scaling(n_entries)
        if isinstance(self.covariance, str):
            root = np.ones(n_entries) if approximation is None else approximation.root
            if self.covariance == "diagonal" and root.ndim == 2:
                root = np.linalg.norm(root, axis=1)
        else:
            root = fitting_root("covariance", self.covariance, n_entries)
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
            moves = _integer_moves(moves, scaling * sds, point, state.n_categories, scaling, rng)
        return (point + moves).astype(point.dtype, copy=False), 0.0, state

    def tune(self, state: RandomWalkState, outcome: Outcome) -> RandomWalkState:
        """One Robbins-Monro step on the scale; at the end of a window, a new covariance."""
        point = outcome.following
        target = checked_target_acceptance(self.target_acceptance) or usual_acceptance(point.size)
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


class RealOrDiscreteState(NamedTuple):
    """State of the two proposals.

    Attributes
    ----------
    is_real : bool array, shape (d,)
        Which entries are real numbers.
    real, discrete : object
        States of the two proposals.
    moves_real : bool
        Whether the last proposal moved the real entries.
    """

    is_real: NDArray[np.bool_]
    real: Any
    discrete: Any
    moves_real: bool = True


@dataclass(frozen=True, eq=False)
class RealOrDiscreteProposal:
    """Half of the steps move the real entries, the other half the discrete ones.

    Parameters
    ----------
    of_real : Proposal
        Proposal for the real entries.
    approximation : GaussianApproximation
        Normal approximation of the real entries.
    of_discrete : Proposal
        Proposal for the discrete entries.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.proposals import CrankNicolsonProposal, GaussianApproximation, Layout
    >>> normal = GaussianApproximation(np.zeros(1), np.eye(1))
    >>> proposal = RealOrDiscreteProposal(CrankNicolsonProposal(1.0), normal)
    >>> rng, state = np.random.default_rng(3), proposal.init(Layout(np.array([0, 2])))
    >>> for _ in range(3):
    ...     point, log_ratio, state = proposal.propose(state, np.zeros(2), rng)
    ...     print(point.round(2), round(log_ratio, 2))
    [-2.56  0.  ] 3.27
    [0. 1.] 0.0
    [-2.02  0.  ] 2.04
    """

    of_real: Proposal[Any]
    approximation: GaussianApproximation
    of_discrete: Proposal[Any] = field(default_factory=RandomWalkProposal)

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> RealOrDiscreteState:
        """Initial states of the two proposals."""
        is_real = layout.n_categories == 0
        real = self.of_real.init(Layout(layout.n_categories[is_real]), self.approximation)
        discrete = self.of_discrete.init(Layout(layout.n_categories[~is_real]))
        return RealOrDiscreteState(is_real, real, discrete)

    def propose(
        self, state: RealOrDiscreteState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, RealOrDiscreteState]:
        """A proposal of one of the two, chosen at random."""
        moves_real = bool(rng.random() < 0.5)
        entries = state.is_real if moves_real else ~state.is_real
        new = point.copy()
        name, proposal = ("real", self.of_real) if moves_real else ("discrete", self.of_discrete)
        own = getattr(state, name)
        new[entries], log_ratio, own = proposal.propose(own, point[entries], rng)
        return new, log_ratio, state._replace(moves_real=moves_real, **{name: own})

    def tune(self, state: RealOrDiscreteState, outcome: Outcome) -> RealOrDiscreteState:
        """Tune the proposal that made the move."""
        entries = state.is_real if state.moves_real else ~state.is_real
        part = outcome._replace(
            previous=outcome.previous[entries], following=outcome.following[entries]
        )
        if state.moves_real:
            return state._replace(real=self.of_real.tune(state.real, part))
        return state._replace(discrete=self.of_discrete.tune(state.discrete, part))

    def freeze(self, state: RealOrDiscreteState) -> RealOrDiscreteState:
        """No more learning."""
        real, discrete = self.of_real.freeze(state.real), self.of_discrete.freeze(state.discrete)
        return state._replace(real=real, discrete=discrete)

    def current_scaling(self, state: RealOrDiscreteState) -> float:
        """Size of the last proposal."""
        if state.moves_real:
            return self.of_real.current_scaling(state.real)
        return self.of_discrete.current_scaling(state.discrete)
