"""Hamiltonian moves on a surrogate of the posterior that reads no rows."""

import copy
import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import checked_count, checked_positive, checked_rate
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.adaptation import DualAveraging, Path, covariance_estimate
from pymc_austerity.proposals.protocols import GaussianApproximation, Layout, Outcome, root_of

__all__ = ["HamiltonianState", "Surrogate", "SurrogateHamiltonianProposal"]

_FIRST_WINDOW = 200
"""Steps after which the metric, known from before the run, is estimated anew."""

_LEAST_SHARE = 0.1
"""Least step size at the start of a window, as a share of that before the run, because chains
may start far away."""


class Surrogate(Protocol):
    """A log-density near that of the posterior, in coordinates of its own."""

    @property
    def root(self) -> NDArray[np.float64]:
        """Root of a covariance in these coordinates, lower triangular, shape (d, d)."""
        ...

    @property
    def step_size(self) -> float:
        """A suitable step size."""
        ...

    def coordinates(self, point: NDArray) -> NDArray[np.float64]:
        """Coordinates of a point, shape (d,)."""
        ...

    def point(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The point with these coordinates, shape (d,)."""
        ...

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the log-density at two points, nats."""
        ...

    def walk(
        self,
        coordinates: NDArray[np.float64],
        root: NDArray[np.float64],
        size: float,
        time: float,
        n_trajectories: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.float64], float, int]:
        """See `pymc_austerity.proposals.trajectories.walk`."""
        ...


class HamiltonianState(NamedTuple):
    """State of a chain of Hamiltonian moves.

    Attributes
    ----------
    root : float array, shape (d, d)
        Root of the inverse of the metric.
    averaging : DualAveraging
        Step size.
    acceptance : float
        Mean acceptance probability of the trajectories of the last proposal.
    window : int
        Steps after which the metric is estimated anew.
    path : Path
        Coordinates since the metric was last estimated.
    """

    root: NDArray[np.float64]
    averaging: DualAveraging
    acceptance: float = math.nan
    window: int = _FIRST_WINDOW
    path: Path = Path()


@dataclass(frozen=True, eq=False)
class SurrogateHamiltonianProposal:
    r"""Hamiltonian trajectories on the log-posterior with the rows expanded about the anchor.

    .. math::
        S(\theta) = \log \rho(\theta) + G \cdot (\theta - \theta^*)
        + \tfrac12 (\theta - \theta^*)' H (\theta - \theta^*)

    is evaluated without reading rows: :math:`\log \rho` is the exact part, with the priors, and
    :math:`G` and :math:`H` are the sums over all rows that control variates provide. A proposal is
    a few trajectories on this surrogate, each accepted or rejected by its change of energy; its
    log-ratio is :math:`S(\theta) - S(\theta')`. The decision adds the exact part and the expansion,
    which cancel the log-ratio: only the residuals remain for the rows to decide. The acceptance is
    that of an independence sampler whose only errors are the residuals, whatever the priors look
    like: funnels, horseshoes and heavy tails, which no normal approximation fits.

    Parameters
    ----------
    n_trajectories : int
        Trajectories of a proposal.
    time : float
        Mean length of a trajectory, in posterior standard deviations; each length is uniform
        between 0 and twice this value.
    target_acceptance : float
        Mean acceptance probability of the trajectories, to which the step size is tuned.

    Raises
    ------
    SettingError, SettingTypeError
        A setting cannot be used; or, when the proposal is given to a step method, there are no
        control variates to build the surrogate from.

    Notes
    -----
    Entries whose prior is normal with a sampled scale or mean are measured from their conditional
    mean, in units of their conditional standard deviation (diagonally): centered where the rows say
    much about them, non-centered elsewhere. The draws are those of the user's variables.

    Trajectories follow the surrogate, so proposals are only as good as it is: where the rows
    are far from quadratic at the scale of the posterior, as in :math:`y \sim N(a b, 1)`, the
    residuals are large, and many proposals are rejected.

    References
    ----------
    Christen, J. A. and Fox, C. (2005). Markov chain Monte Carlo using an approximation. Journal of
    Computational and Graphical Statistics 14(4), 795-810: two stages of acceptance.
    Liu, J. S. (2001). Monte Carlo Strategies in Scientific Computing, section 9.4.3: several steps
    on the surrogate for each decision.
    Rasmussen, C. E. (2003). Gaussian processes to speed up hybrid Monte Carlo for expensive
    Bayesian integrals. Bayesian Statistics 7, 651-659.
    Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. JMLR 15, 1593-1623: tuning.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import AusterityMH, SurrogateHamiltonianProposal
    >>> y = np.random.default_rng(1).normal(0.1, 1.0, size=5_000)
    >>> with pm.Model():
    ...     mu = pm.Laplace("mu", 0.0, 0.01)
    ...     _ = pm.Normal("y", mu, 1.0, observed=y)
    ...     step = AusterityMH(proposal=SurrogateHamiltonianProposal(n_trajectories=2))
    ...     idata = pm.sample(
    ...         draws=500, step=step, chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(abs(idata.posterior["mu"].mean() - (y.mean() - 100 / 5_000)) < 0.003)
    True
    """

    n_trajectories: int = 8
    time: float = 2.0
    target_acceptance: float = 0.8
    _surrogate: Surrogate | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        checked_count("n_trajectories", self.n_trajectories)
        checked_positive("time", self.time, "a length of trajectories")
        checked_rate("target_acceptance", self.target_acceptance)

    def with_surrogate(self, surrogate: Surrogate) -> "SurrogateHamiltonianProposal":
        """A proposal with the same settings, for the posterior of a step method."""
        bound = copy.copy(self)
        object.__setattr__(bound, "_surrogate", surrogate)
        return bound

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate that the step method provided."""
        if self._surrogate is None:
            raise SettingError(
                "SurrogateHamiltonianProposal is not connected to a model: give "
                "it to AusterityMH(proposal=...) by itself, not as part of another proposal."
            )
        return self._surrogate

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> HamiltonianState:
        """Initial metric and step size of a chain."""
        surrogate = self.surrogate
        return HamiltonianState(surrogate.root, DualAveraging.begin(surrogate.step_size))

    def propose(
        self, state: HamiltonianState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, HamiltonianState]:
        """New point, log-ratio (-inf if no trajectory was accepted), and new state."""
        surrogate = self.surrogate
        end, acceptance, n_accepted = surrogate.walk(
            surrogate.coordinates(point),
            state.root,
            state.averaging.size,
            self.time,
            self.n_trajectories,
            rng,
        )
        state = state._replace(acceptance=acceptance)
        if n_accepted == 0:
            return point, -math.inf, state
        new = surrogate.point(end).astype(point.dtype, copy=False)
        log_ratio = -surrogate.difference(new, point)
        return new, log_ratio if math.isfinite(log_ratio) else -math.inf, state

    def tune(self, state: HamiltonianState, outcome: Outcome) -> HamiltonianState:
        """One step of dual averaging; at the end of a window, a new metric."""
        averaging = state.averaging.after(state.acceptance, self.target_acceptance)
        path = state.path.append(self.surrogate.coordinates(outcome.following))
        state = state._replace(averaging=averaging, path=path)
        return state if averaging.n_steps < state.window else self._next_window(state)

    def _next_window(self, state: HamiltonianState) -> HamiltonianState:
        covariance = covariance_estimate(state.path.to_array(), full=True)
        root = state.root if covariance is None else root_of(covariance)
        size = max(state.averaging.end().size, _LEAST_SHARE * self.surrogate.step_size)
        return HamiltonianState(root, DualAveraging.begin(size), state.acceptance, 2 * state.window)

    def freeze(self, state: HamiltonianState) -> HamiltonianState:
        """The average step size of the last window, and no more learning."""
        return state._replace(averaging=state.averaging.end(), path=Path())

    def current_scaling(self, state: HamiltonianState) -> float:
        """Step size."""
        return state.averaging.size
