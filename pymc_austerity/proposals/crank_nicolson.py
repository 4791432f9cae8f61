"""Crank-Nicolson moves about a normal approximation: of all entries, or some given the others."""

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import checked_number
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.protocols import GaussianApproximation, Layout, Outcome

_State = TypeVar("_State")


class FixedSize:
    """Common part of proposals whose moves have a fixed size: there is nothing to learn.

    Attributes
    ----------
    b : float
        Size of the move, in (0, 1].
    """

    b: float

    def __post_init__(self) -> None:
        checked_number(
            "b", self.b, lambda b: 0.0 < b <= 1.0, "the size of a move", "a number in (0, 1]"
        )

    def tune(self, state: _State, outcome: Outcome) -> _State:
        """Nothing to learn."""
        return state

    def freeze(self, state: _State) -> _State:
        """Nothing to freeze."""
        return state

    def current_scaling(self, state: object) -> float:
        """Size of the move."""
        return self.b


@dataclass(frozen=True)
class CrankNicolsonProposal(FixedSize):
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
        new = (state.mean + kept * (point - state.mean) + self.b * noise).astype(
            point.dtype, copy=False
        )
        return new, state.log_density(point) - state.log_density(new), state


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


class ConditionalState(NamedTuple):
    """The fixed quantities of a `ConditionalProposal`.

    Attributes
    ----------
    moved, held : int arrays, shapes (m,) and (d - m,)
        Entries that move, and entries that are held.
    center : float array, shape (d - m,)
        Mean of the entries that are held.
    given : Conditional
        Distribution of the entries that move, given the held ones.
    """

    moved: NDArray[np.int64]
    held: NDArray[np.int64]
    center: NDArray[np.float64]
    given: Conditional

    def mean_at(self, point: NDArray) -> NDArray[np.float64]:
        """Conditional mean of the entries that move, shape (m,)."""
        return self.given.approximation.mean + self.given.gain.dot(point[self.held] - self.center)


@dataclass(frozen=True, eq=False)
class ConditionalProposal(FixedSize):
    r"""Moves of some entries that would always be accepted if the normal approximation were right.

    With :math:`m(\psi)` and :math:`L L'` the mean and the covariance of the entries
    :math:`\theta` given the others, :math:`\psi`, under the normal approximation,

    .. math::
        \theta' = m(\psi) + \sqrt{1 - b^2} (\theta - m(\psi)) + b L \xi, \qquad \xi \sim N(0, I)

    For hierarchies, whose means and scales are far from normal: these are held here and moved by
    other proposals.

    Parameters
    ----------
    held : int array
        Entries of the raveled point that stay where they are.
    b : float
        Size of the move, in (0, 1].

    References
    ----------
    Cotter, S. L., Roberts, G. O., Stuart, A. M. and White, D. (2013). MCMC methods for functions.
    Statistical Science 28(3), 424-446.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.proposals import ConditionalProposal, GaussianApproximation, Layout
    >>> about = GaussianApproximation(np.zeros(3), np.eye(3))
    >>> proposal = ConditionalProposal(held=np.array([1]))
    >>> state = proposal.init(Layout.continuous(3), about)
    >>> point, log_ratio, state = proposal.propose(state, np.ones(3), np.random.default_rng(1))
    >>> point[1]
    np.float64(1.0)
    """

    held: NDArray[np.int64]
    b: float = 1.0

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> ConditionalState:
        """The conditional distribution, which does not change."""
        if approximation is None:
            raise SettingError(
                "ConditionalProposal needs the normal approximation of the posterior that comes "
                "with control variates, and there are none here: use RandomWalkProposal(), or "
                "AusterityMH with control variates."
            )
        moved = np.setdiff1d(np.arange(layout.n_entries), self.held)
        given = conditional(approximation, moved, self.held)
        return ConditionalState(moved, self.held, approximation.mean[self.held], given)

    def propose(
        self, state: ConditionalState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, ConditionalState]:
        """New point, the log-ratio, and the same state."""
        mean, about = state.mean_at(point), state.given.approximation
        noise = about.root.dot(rng.standard_normal(mean.size))
        kept = math.sqrt(1.0 - self.b * self.b)
        new = point.copy()
        new[state.moved] = mean + kept * (point[state.moved] - mean) + self.b * noise
        before, after = (about.inverse_root.dot(p[state.moved] - mean) for p in (point, new))
        return new, 0.5 * float(after.dot(after) - before.dot(before)), state
