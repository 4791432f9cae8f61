r"""Hamiltonian moves on a surrogate of the posterior that reads no rows, interpreted or compiled.

Trajectories are made in coordinates that straighten the funnels of hierarchies.

Some entries :math:`\theta_i` have a prior that is normal given the others, :math:`\psi`, such as
the levels of a hierarchy given their mean and scale. They are measured from a conditional mean, in
conditional standard deviations:

.. math::
    \theta_i = m_i(\psi) + P_i(\psi)^{-1/2} z_i, \quad
    P_i = \max(-H_{ii}, 0) + c_i, \quad
    m_i = \theta_i^* + s_i / P_i

with the slope :math:`s_i` and the curvature :math:`c_i` (with a minus sign) of the row-free part at
:math:`(\psi, \theta^*)`. This is centered where the rows say much about an entry, and non-centered
where the prior does, after Papaspiliopoulos, Roberts and Skold (2003), Non-centered
parameterisations for hierarchical models. The density of the coordinates has the factor
:math:`\prod_i P_i^{-1/2}`.

The row-free part is quadratic in these entries, and its cross derivatives between them vanish. Its
gradient at a few points therefore gives all second and third derivatives that are needed, without
error: differences of a quadratic function are exact.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.arguments import checked_count, checked_positive, checked_rate
from pymc_austerity.parts import part
from pymc_austerity.proposals.adaptation import DualAveraging, Path, covariance_estimate
from pymc_austerity.proposals.protocols import (
    ConnectedProposal,
    GaussianApproximation,
    Layout,
    Outcome,
    root_of,
)

Exact = Callable[[NDArray], Sequence[Any]]
"""Maps a point to the row-free part there, nats, and its gradient, shape (d,)."""

_MOST_STEPS = 500
"""Maximum number of leapfrog steps in a trajectory."""

_FIRST_WINDOW = 200
"""Steps after which the metric, known from before the run, is estimated anew."""

_LEAST_SHARE = 0.1
"""Least step size at the start of a window, as a share of that before the run, because chains
may start far away."""


_SINGLE, _SHORTEST = 0.1, 0.1
"""Share of the proposals that are a single step, and the least factor of its size."""

VECTOR = types.float64[::1]
_VECTORS, DENSITY = types.UniTuple(VECTOR, 2), types.Tuple((types.float64, VECTOR))


def evaluate(exact: Exact, point: NDArray) -> tuple[float, NDArray]:
    """The row-free part and its gradient; in compiled code, of a function that has an address."""
    value, gradient = exact(point)
    return float(value), gradient


@part(_VECTORS)
def center_and_scale(
    exact: Exact, x: NDArray, anchor: NDArray, hessian: NDArray, scaled: NDArray
) -> tuple[NDArray, NDArray]:
    r"""Conditional mean and standard deviation of the scaled entries.

    Parameters
    ----------
    exact : callable
        The row-free part.
    x : float array, shape (d,)
        A point, or coordinates; the values of scaled entries do not matter.
    anchor, hessian : float arrays, shapes (d,) and (d, d)
        :math:`\theta^*` and :math:`H`.
    scaled : int array, shape (k,)
        Entries with coordinates of their own.

    Returns
    -------
    center, scale : float arrays, shape (k,)
        :math:`m` and :math:`P^{-1/2}`, which is NaN where the conditional prior is not normal.
    """
    shift, scale = _shift_and_scale(exact, x, anchor, hessian, scaled)
    for j in range(scaled.size):
        shift[j] += anchor[scaled[j]]
    return shift, scale


@part(_VECTORS)
def _shift_and_scale(
    exact: Exact, x: NDArray, anchor: NDArray, hessian: NDArray, scaled: NDArray
) -> tuple[NDArray, NDArray]:
    """Conditional means, from the anchor, and standard deviations of the scaled entries."""
    shift, scale = np.ones(scaled.size), np.ones(scaled.size)
    ahead = _gradient_displaced(exact, x, anchor, scaled, shift, 1.0)
    behind = _gradient_displaced(exact, x, anchor, scaled, shift, -1.0)
    for j in range(scaled.size):
        i = scaled[j]
        precision = max(-hessian[i, i], 0.0) - 0.5 * (ahead[i] - behind[i])
        shift[j] = 0.5 * (ahead[i] + behind[i]) / precision
        scale[j] = precision**-0.5 if precision > 0.0 else np.nan
    return shift, scale


@part(VECTOR)
def _gradient_displaced(
    exact: Exact, x: NDArray, anchor: NDArray, scaled: NDArray, by: NDArray, factor: float
) -> NDArray:
    """Gradient of the row-free part where scaled entries are displaced from the anchor."""
    there = x.copy()
    for j in range(scaled.size):
        there[scaled[j]] = anchor[scaled[j]] + factor * by[j]
    return evaluate(exact, there)[1]


@part(DENSITY)
def _of_surrogate(
    exact: Exact, point: NDArray, anchor: NDArray, gradient: NDArray, hessian: NDArray
) -> tuple[float, NDArray]:
    """Row-free part and expansion of the rows."""
    value, slope = evaluate(exact, point)
    away = point - anchor
    curved = np.dot(hessian, away)
    return value + np.dot(gradient, away) + 0.5 * np.dot(away, curved), slope + gradient + curved


@part(DENSITY)
def log_density(
    exact: Exact, x: NDArray, anchor: NDArray, gradient: NDArray, hessian: NDArray, scaled: NDArray
) -> tuple[float, NDArray]:
    """The surrogate in its coordinates: log-density, nats, and gradient, shape (d,).

    Parameters
    ----------
    exact : callable
        The row-free part.
    x : float array, shape (d,)
        Coordinates.
    anchor, gradient, hessian : float arrays, shapes (d,), (d,) and (d, d)
        Expansion of the rows.
    scaled : int array, shape (k,)
        Entries with coordinates of their own.
    """
    if scaled.size == 0:
        return _of_surrogate(exact, x, anchor, gradient, hessian)
    shift, scale = _shift_and_scale(exact, x, anchor, hessian, scaled)
    point, value = x.copy(), 0.0
    for j in range(scaled.size):
        i = scaled[j]
        point[i] = anchor[i] + shift[j] + scale[j] * x[i]
        value += np.log(scale[j])
    at, total = _of_surrogate(exact, point, anchor, gradient, hessian)
    by_slope, by_curvature = np.empty(scaled.size), np.empty(scaled.size)
    for j in range(scaled.size):
        i, variance = scaled[j], scale[j] * scale[j]
        by_slope[j] = total[i] * variance
        by_curvature[j] = by_slope[j] * (shift[j] + 0.5 * x[i] * scale[j]) + 0.5 * variance
    own = total.copy()
    _add_through_slope(exact, x, anchor, scaled, by_slope, scale, total)
    _add_through_curvature(exact, x, anchor, scaled, by_curvature, scale, total)
    for j in range(scaled.size):
        total[scaled[j]] = own[scaled[j]] * scale[j]
    return at + value, total


@part(types.void)
def _add_through_slope(
    exact: Exact,
    x: NDArray,
    anchor: NDArray,
    scaled: NDArray,
    weights: NDArray,
    scale: NDArray,
    total: NDArray,
) -> None:
    """Add the gradient of a weighted sum of first derivatives by the scaled entries."""
    size = 0.0
    for j in range(scaled.size):
        size = max(size, abs(weights[j]) / scale[j])
    if not size > 0.0:
        return
    ahead = _gradient_displaced(exact, x, anchor, scaled, weights, 1.0 / size)
    behind = _gradient_displaced(exact, x, anchor, scaled, weights, -1.0 / size)
    for i in range(x.size):
        total[i] += 0.5 * size * (ahead[i] - behind[i])


@part(types.void)
def _add_through_curvature(
    exact: Exact,
    x: NDArray,
    anchor: NDArray,
    scaled: NDArray,
    weights: NDArray,
    scale: NDArray,
    total: NDArray,
) -> None:
    """Add the gradient of a weighted sum of second derivatives by the scaled entries."""
    size, way = 0.0, np.empty(scaled.size)
    for j in range(scaled.size):
        size = max(size, math.sqrt(abs(weights[j])) / scale[j])
    if not size > 0.0:
        return
    for sign in (1.0, -1.0):
        for j in range(scaled.size):
            way[j] = math.sqrt(max(sign * weights[j], 0.0))
        ahead = _gradient_displaced(exact, x, anchor, scaled, way, 1.0 / size)
        behind = _gradient_displaced(exact, x, anchor, scaled, way, -1.0 / size)
        for i in range(x.size):
            total[i] += sign * size * size * (ahead[i] + behind[i])


@part(types.Tuple((VECTOR, VECTOR, types.float64, VECTOR)))
def leapfrog(
    exact: Exact,
    known: tuple[NDArray, ...],
    place: NDArray,
    momentum: NDArray,
    gradient: NDArray,
    root: NDArray,
    size: float,
    n_steps: int,
) -> tuple[NDArray, NDArray, float, NDArray]:
    r"""A trajectory of Hamiltonian dynamics, by the method of Stoermer and Verlet.

    With the metric :math:`M^{-1} = L L'` and momenta :math:`p` in units of it, the Hamiltonian is
    :math:`-\log \pi(x) + p' p / 2`. A trajectory preserves volume, and the one that starts at its
    end with the opposite momentum leads back.

    Parameters
    ----------
    exact, known : callable and tuple of arrays
        Arguments of `log_density`, besides the coordinates.
    place, momentum, gradient : float arrays, shape (d,)
        Beginning of the trajectory, and the gradient there.
    root : float array, shape (d, d)
        :math:`L`.
    size : float
        Step size.
    n_steps : int
        Number of steps; the trajectory ends before a point where the log-density is not finite.

    Returns
    -------
    place, momentum : float arrays, shape (d,)
        Its end.
    value : float
        Log-density there; -inf if that is not finite, nats.
    gradient : float array, shape (d,)
    """
    across, value = root.T.copy(), -np.inf
    momentum = momentum + 0.5 * size * np.dot(across, gradient)
    for step in range(n_steps):
        place = place + size * np.dot(root, momentum)
        value, gradient = log_density(exact, place, *known)
        if not math.isfinite(value):
            return place, momentum, -np.inf, gradient
        kick = size if step < n_steps - 1 else 0.5 * size
        momentum = momentum + kick * np.dot(across, gradient)
    return place, momentum, value, gradient


def walk(
    exact: Exact,
    known: tuple[NDArray, ...],
    place: NDArray,
    root: NDArray,
    size: float,
    time: float,
    n_trajectories: int,
    rng: np.random.Generator,
) -> tuple[NDArray, float, int]:
    """Hamiltonian Monte Carlo: a few successive trajectories, each accepted or rejected.

    All trajectories are drawn alike, each with new momenta and a random length and step size. Each
    step of this chain is reversible with respect to the density, and so is the move from its
    beginning to its end.

    Parameters
    ----------
    exact, known, place, root, size
        As in `leapfrog`.
    time : float
        Mean length of the trajectories, in units of the metric.
    n_trajectories : int
    rng : numpy.random.Generator

    Returns
    -------
    place : float array, shape (d,)
        End of the chain.
    acceptance : float
        Mean acceptance probability of the trajectories.
    n_accepted : int
        Trajectories that were accepted.
    """
    value, gradient = log_density(exact, place, *known)
    total, n_accepted = 0.0, 0
    for _ in range(n_trajectories):
        momentum = rng.standard_normal(place.size)
        step_size = size * (0.75 + 0.5 * rng.random())
        n_steps = min(1 + int(2.0 * time / size * rng.random()), _MOST_STEPS)
        energy = value - 0.5 * np.dot(momentum, momentum)
        end, momentum, end_value, end_gradient = leapfrog(
            exact, known, place, momentum, gradient, root, step_size, n_steps
        )
        change = end_value - 0.5 * np.dot(momentum, momentum) - energy
        probability = math.exp(min(change, 0.0)) if change == change else 0.0
        total += probability
        if rng.random() < probability:
            place, value, gradient = end, end_value, end_gradient
            n_accepted += 1
    return place, total / max(n_trajectories, 1), n_accepted


@part(types.Tuple((types.float64, types.float64, types.int64)))
def kind_of_move(
    size: float, time: float, n_trajectories: int, rng: np.random.Generator
) -> tuple[float, float, int]:
    """Step size, mean length and number of the trajectories of a proposal, drawn at random.

    Some proposals are single steps, short or very short. Ends of trajectories hardly depend on
    where they begin: from a tail in which the surrogate falls below the posterior by many nats,
    all of them lead back to the bulk, and all would be rejected.

    Parameters
    ----------
    size, time, n_trajectories
        Of the other proposals; see `walk`.
    rng : numpy.random.Generator

    Returns
    -------
    size, time, n_trajectories
        Arguments of `walk`; the time is 0 for a single step.
    """
    if rng.random() < _SINGLE:
        return size * _SHORTEST ** rng.random(), 0.0, 1
    return size, time, n_trajectories


class ScaledCoordinates:
    """Coordinates in which some entries are in units of their conditional standard deviation.

    Attributes
    ----------
    scaled : int array
        These entries.
    """

    scaled: NDArray[np.intp]

    def center_and_scale(self, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Conditional means and standard deviations: see the function of this name."""
        raise NotImplementedError

    def coordinates(self, point: NDArray) -> NDArray[np.float64]:
        """The coordinates of a point, shape (d,)."""
        found = point.astype(np.float64)
        if self.scaled.size:
            center, scale = self.center_and_scale(found)
            found[self.scaled] = (found[self.scaled] - center) / scale
        return found

    def point(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The point with these coordinates, shape (d,)."""
        found = coordinates.copy()
        if self.scaled.size:
            center, scale = self.center_and_scale(coordinates)
            found[self.scaled] = center + scale * coordinates[self.scaled]
        return found


class Surrogate(Protocol):
    """A log-density near that of the posterior, in coordinates of its own."""

    @property
    def root(self) -> NDArray[np.float64]:
        """Root of a covariance in these coordinates, lower triangular, shape (d, d)."""

    @property
    def step_size(self) -> float:
        """A suitable step size."""

    def coordinates(self, point: NDArray) -> NDArray[np.float64]:
        """Coordinates of a point, shape (d,)."""

    def point(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The point with these coordinates, shape (d,)."""

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the log-density at two points, nats."""

    def walk(
        self,
        coordinates: NDArray[np.float64],
        root: NDArray[np.float64],
        size: float,
        time: float,
        n_trajectories: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.float64], float, int]:
        """See `pymc_austerity.proposals.hamiltonian.walk`."""


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
    is_single : bool
        Whether it was a single step, whose size is another.
    window : int
        Steps after which the metric is estimated anew.
    path : Path
        Coordinates since the metric was last estimated.
    """

    root: NDArray[np.float64]
    averaging: DualAveraging
    acceptance: float = math.nan
    is_single: bool = False
    window: int = _FIRST_WINDOW
    path: Path = Path()


@dataclass(frozen=True, eq=False)
class SurrogateHamiltonianProposal(ConnectedProposal):
    r"""Hamiltonian trajectories on the log-posterior with the rows expanded about the anchor.

    .. math::
        S(\theta) = \log \rho(\theta) + G \cdot (\theta - \theta^*)
        + \tfrac12 (\theta - \theta^*)' H (\theta - \theta^*)

    is evaluated without reading rows: :math:`\log \rho` is the row-free part, with the priors, and
    :math:`G` and :math:`H` are the sums over all rows that control variates provide. A proposal is
    a few trajectories on this surrogate, each accepted or rejected by its change of energy, or one
    time in ten a single step, which leads out of tails that the surrogate does not know; its
    log-ratio is :math:`S(\theta) - S(\theta')`. The decision adds the row-free part and the
    expansion, which cancel the log-ratio: only the residuals remain for the rows to decide. The
    acceptance is that of an independence sampler whose only errors are the residuals, whatever the
    priors look like: funnels, horseshoes and heavy tails, which no normal approximation fits.

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

    def __post_init__(self) -> None:
        checked_count("n_trajectories", self.n_trajectories)
        checked_positive("time", self.time, "a length of trajectories")
        checked_rate("target_acceptance", self.target_acceptance)

    def with_surrogate(self, surrogate: Surrogate) -> "SurrogateHamiltonianProposal":
        """A proposal with the same settings, for the posterior of a step method."""
        return self.connected(surrogate)

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate that the step method provided."""
        return self.provided

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
        surrogate, usual = self.surrogate, state.averaging.size
        size, time, n_trajectories = kind_of_move(usual, self.time, self.n_trajectories, rng)
        end, acceptance, n_accepted = surrogate.walk(
            surrogate.coordinates(point), state.root, size, time, n_trajectories, rng
        )
        state = state._replace(acceptance=acceptance, is_single=not time)
        if n_accepted == 0:
            return point, -math.inf, state
        new = surrogate.point(end).astype(point.dtype, copy=False)
        log_ratio = -surrogate.difference(new, point)
        return new, log_ratio if math.isfinite(log_ratio) else -math.inf, state

    def tune(self, state: HamiltonianState, outcome: Outcome) -> HamiltonianState:
        """One step of dual averaging; at the end of a window, a new metric."""
        averaging = state.averaging
        if not state.is_single:
            averaging = averaging.after(state.acceptance, self.target_acceptance)
        path = state.path.append(self.surrogate.coordinates(outcome.following))
        state = state._replace(averaging=averaging, path=path)
        return state if averaging.n_steps < state.window else self._next_window(state)

    def _next_window(self, state: HamiltonianState) -> HamiltonianState:
        known = self.surrogate.root @ self.surrogate.root.T
        covariance = covariance_estimate(state.path.to_array(), full=True, known=known)
        root = state.root if covariance is None else root_of(covariance)
        size = max(state.averaging.end().size, _LEAST_SHARE * self.surrogate.step_size)
        averaging, window = DualAveraging.begin(size), 2 * state.window
        return state._replace(root=root, averaging=averaging, window=window, path=Path())

    def freeze(self, state: HamiltonianState) -> HamiltonianState:
        """The average step size of the last window, and no more learning."""
        return state._replace(averaging=state.averaging.end(), path=Path())

    def current_scaling(self, state: HamiltonianState) -> float:
        """Step size."""
        return state.averaging.size
