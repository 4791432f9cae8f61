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
