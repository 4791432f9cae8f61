"""How often a sequential test errs and how many rows it reads, computed before a run."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import expon, exponnorm

from pymc_austerity.design.looks import Boundary, Looks

Floats = NDArray[np.float64]
_REACH = 8.5
"""Standard deviations around its mean within which a normal variable is followed; omits 2e-17."""

_PANEL = 5.0
"""Length of a quadrature panel, in standard deviations of the narrowest normal density involved."""

_N_NODES = 12
"""Gauss-Legendre nodes in a panel."""

_NEGLIGIBLE = 1e-15
"""Decisions that continue with a smaller probability are ignored."""

_SQRT_TWO_PI = math.sqrt(2.0 * math.pi)
_N_FINE = 257
_FARTHEST_DISTANCE = 40.0
"""Distances beyond this many standard errors of the first look are never decided wrongly, and those
beyond this many nats never occur."""

_SMALL = 1e-3
"""Standard deviation of the log-ratio, nats, below which it is treated as constant."""

_FARTHEST_ERROR = 9.0
"""Distance, in standard errors of the first look, beyond which decisions do not err (1e-19 do)."""

_N_DISTANCES = 257


class OperatingCharacteristic(NamedTuple):
    """Error and data usage of a sequential test at given distances from the threshold.

    Attributes
    ----------
    error : float array
        Probability of a wrong decision, E.
    data_fraction : float array
        Expected share of the rows seen at the decision.
    """

    error: Floats
    data_fraction: Floats


class _Grid(NamedTuple):
    """Nodes at which the test continues after a look, and their probabilities.

    `survival` is the probability of no earlier stop, given that the statistic is at the node, times
    the quadrature weights.
    """

    information: float
    nodes: Floats
    survival: Floats


def operating_characteristic(
    mu_std: ArrayLike, looks: Looks, boundary: Boundary
) -> OperatingCharacteristic:
    r"""Error and expected data usage of a sequential test, by dynamic programming.

    Let :math:`\tau_j = \pi_j / (1 - \pi_j)`. The standardized distance from the threshold is
    :math:`z_j = \mu_{std} \sqrt{\tau_j} + B(\tau_j) / \sqrt{\tau_j}` with a Brownian motion
    :math:`B` (the recursion of section 5.1, rewritten). Given :math:`z_j`, the path before
    look j is a Brownian bridge that does not depend on :math:`\mu_{std}`:

    .. math::
        z_{j-1} \mid z_j \sim \mathrm{Normal}(\rho_j z_j, 1 - \rho_j^2), \qquad
        \rho_j^2 = \tau_{j-1} / \tau_j .

    Hence the probability :math:`h_j(z)` that the test has not stopped before look j, given
    :math:`z_j = z`, is carried from look to look once for all :math:`\mu_{std}`:

    .. math::
        h_j(z) &= \int_{|y| \le G_{j-1}} h_{j-1}(y) \,
                  \mathrm{Normal}(y; \rho_j z, 1 - \rho_j^2) \, dy, \qquad h_1 = 1, \\
        C_j(\mu_{std}) &= \int_{|z| \le G_j} h_j(z) \, \phi(z - \mu_{std} \sqrt{\tau_j}) \, dz .

    :math:`C_j` is the probability of continuing after look j,
    :math:`\bar\pi = \pi_1 + \sum_j (\pi_{j+1} - \pi_j) C_j`, and :math:`E` sums the probabilities
    of stopping on the wrong side, the same integrals weighted by
    :math:`P(z_{j+1} \text{ beyond } -G_{j+1} \mid z_j)`.

    Parameters
    ----------
    mu_std : float array, any shape
        True distance from the threshold in units of the spread,
        :math:`(\mu - \mu_0) \sqrt{N - 1} / \sigma_l`. Its sign does not matter; 0 stands for the
        limit from above.
    looks : Looks
        When the test looks.
    boundary : Boundary
        Distance at which it stops.

    Returns
    -------
    OperatingCharacteristic
        Arrays in the shape of `mu_std`.

    Notes
    -----
    Exact for normal differences with a known standard deviation. The test itself only has an
    estimate, and compares it with quantiles of Student's t: each look then errs as often as
    here, while the dependence between looks is slightly different. Differences that are not
    normal matter only insofar as means of batches are not normal. Stratified samples are treated
    as uniform ones of another share (see `effective_shares`), with the allocation of rows known
    beforehand.

    On one core of the machine it was written on, 200 distances and 20 looks take 2 to 7 ms
    (``examples/design_of_tests.py`` compares the results with the test itself).

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.1.

    Examples
    --------
    >>> from pymc_austerity.design import Boundary, constant_looks, operating_characteristic
    >>> looks = constant_looks(batch_size=500, n_rows=10_000)
    >>> error, data_fraction = operating_characteristic([0.0, 1.0, 4.0], looks, Boundary(0.05))
    >>> error.round(3)
    array([0.282, 0.076, 0.006])
    >>> data_fraction.round(3)
    array([0.652, 0.487, 0.17 ])
    """
    distances = np.abs(np.asarray(mu_std, dtype=np.float64))
    flat = distances.ravel()
    shares = np.asarray(looks.shares)
    error, usage = np.zeros(flat.size), np.full(flat.size, shares[0])
    if flat.size == 0 or boundary.epsilon == 0.0:
        usage[:] = 1.0
    else:
        bounds = boundary.at(looks)
        steps = zip(_stops(flat, looks.information, bounds), np.diff(shares), strict=False)
        for (wrong, go_on), added in steps:
            error += wrong
            usage += added * go_on
    return OperatingCharacteristic(
        error.reshape(distances.shape), np.minimum(usage, 1.0).reshape(distances.shape)
    )


def worst_error(looks: Looks, boundary: Boundary) -> float:
    r"""Error of a sequential test whose mean lies right at the threshold.

    Half of the decisions made before all rows are read are then wrong:
    :math:`E(0+) = (1 - P(\text{all rows are seen})) / 2`.

    Parameters
    ----------
    looks : Looks
        When the test looks.
    boundary : Boundary
        Distance at which it stops.

    Returns
    -------
    float
        No decision errs more often, insofar as the means of batches are normal.

    Examples
    --------
    >>> from pymc_austerity.design import Boundary, constant_looks, worst_error
    >>> round(worst_error(constant_looks(500, 10_000), Boundary(epsilon=0.05)), 3)
    0.282
    """
    return float(operating_characteristic(0.0, looks, boundary).error)


def _stops(
    distances: Floats, information: Floats, bounds: Floats
) -> Iterator[tuple[Floats, Floats]]:
    """Probabilities of stopping on the wrong side at each look but the last, and of continuing."""
    grid: _Grid | None = None
    open_ = np.arange(distances.size)  # which decisions are not certain to be taken by now
    following = np.append(information, math.inf)[1:]
    for now, bound, after in zip(information, bounds, following, strict=True):
        wrong, go_on = np.zeros(distances.size), np.zeros(distances.size)
        if open_.size == 0:
            return
        drift = distances[open_]
        wrong[open_] = _wrong_side(drift, grid, now, bound)
        low = max(-bound, float(drift.min()) * math.sqrt(now) - _REACH)
        high = min(bound, float(drift.max()) * math.sqrt(now) + _REACH)
        if high > low:
            before = 0.0 if grid is None else grid.information
            width = math.sqrt(min(1.0 - before / now, 1.0 - now / after))
            grid = _next_grid(grid, now, *_quadrature(low, high, _PANEL * width))
            go_on[open_] = _density(drift, grid) @ grid.survival
        open_ = np.flatnonzero(go_on > _NEGLIGIBLE)
        yield wrong, go_on


def _wrong_side(distances: Floats, grid: _Grid | None, now: float, bound: float) -> Floats:
    """Probability of stopping below ``-bound`` at this look, but not earlier."""
    if grid is None:
        return np.asarray(ndtr(-bound - distances * math.sqrt(now)))
    correlation = math.sqrt(grid.information / now)
    spread = math.sqrt(1.0 - grid.information / now)
    drift = distances * (math.sqrt(now) - correlation * math.sqrt(grid.information))
    edge = (-bound - correlation * grid.nodes) / spread
    below = ndtr(edge - (drift / spread)[:, None])
    below *= _density(distances, grid)
    return below @ grid.survival


def _density(distances: Floats, grid: _Grid) -> Floats:
    """Density of the statistic at the nodes if no test stopped; shape (n, n_nodes)."""
    centered = grid.nodes - (distances * math.sqrt(grid.information))[:, None]
    centered *= centered
    centered *= -0.5
    density = np.exp(centered, out=centered)
    density /= _SQRT_TWO_PI
    return density


def _next_grid(grid: _Grid | None, now: float, nodes: Floats, weights: Floats) -> _Grid:
    if grid is None:
        return _Grid(now, nodes, weights)
    squared = grid.information / now
    centered = grid.nodes - math.sqrt(squared) * nodes[:, None]
    bridge = np.exp(-0.5 / (1.0 - squared) * centered * centered)
    survival = bridge @ grid.survival / (_SQRT_TWO_PI * math.sqrt(1.0 - squared))
    return _Grid(now, nodes, weights * survival)


def _quadrature(low: float, high: float, longest: float) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss-Legendre panels on an interval."""
    n_panels = math.ceil((high - low) / longest)
    nodes, weights = _gauss_legendre()
    length = (high - low) / n_panels
    starts = low + length * np.arange(n_panels)
    return (starts[:, None] + length * nodes).ravel(), np.tile(length * weights, n_panels)


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


def expected_characteristic(
    looks: Looks, boundary: Boundary, spread: float, *, acceptance: float = 1.0
) -> tuple[float, float]:
    r"""Expected shares of wrong decisions and of the rows that they read, in equilibrium.

    A decision at distance :math:`x = \Delta - \log u` from the threshold is wrong with probability
    :math:`E(x / s)`. For a reversible kernel with a normal log-ratio :math:`\Delta`, its mean is
    :math:`-v / 2` where :math:`v` is its variance, and the acceptance rate is
    :math:`a = 2 \Phi(-\sqrt v / 2)`. As :math:`-\log u` is exponential, :math:`x` has the density
    :math:`f` of a normal plus an exponential variable, and the expected error is

    .. math:: \int E(x / s) \, f(x) \, dx .

    Parameters
    ----------
    looks : Looks
        When the test looks.
    boundary : Boundary
        At which distance it stops.
    spread : float
        Unit :math:`s` of :math:`\mu_{std}`, nats.
    acceptance : float
        Acceptance rate of the proposals, in (0, 1].

    Returns
    -------
    error : float
        Not above the worst-case error.
    data_fraction : float
        Of a decision.

    Notes
    -----
    (Derived here.) Without control variates, random-walk steps of :math:`2.38 / \sqrt d` posterior
    standard deviations in each of d directions have :math:`s \approx 2.38` nats: the sum of the
    squared differences is the step's squared length in the metric of the Fisher information.

    Examples
    --------
    >>> from pymc_austerity.design import Boundary, constant_looks, expected_characteristic
    >>> looks = constant_looks(500, 10_000)
    >>> error, _ = expected_characteristic(looks, Boundary(0.05), 0.1, acceptance=0.5)
    >>> round(error, 3)
    0.012
    """
    first = float(np.asarray(looks.shares)[0])
    if len(looks) == 1:
        return 0.0, first
    fine = np.linspace(0.0, 1.0, _N_FINE) ** 3  # near the threshold
    nearest = _FARTHEST_DISTANCE * spread / math.sqrt(looks.information[0])
    nats = np.unique(
        np.concatenate([nearest * fine, _FARTHEST_DISTANCE * fine])
    )  # of error, and of density
    error, read = operating_characteristic(nats / spread, looks, boundary)
    density = _density_of_distance(nats, acceptance) + _density_of_distance(-nats, acceptance)
    wrong = min(np.trapezoid(error * density, nats), error[0])
    return float(wrong), first + float(np.trapezoid((read - first) * density, nats))


def _density_of_distance(distance: NDArray[np.float64], acceptance: float) -> NDArray[np.float64]:
    """Density of the distance from the threshold, nats."""
    deviation = -2.0 * float(ndtri(acceptance / 2.0))
    if deviation < _SMALL:
        return np.asarray(expon.pdf(distance))
    mean = -0.5 * deviation**2
    return np.asarray(exponnorm.pdf(distance, 1.0 / deviation, loc=mean, scale=deviation))


def distance_grid(tests: Sequence[Looks], furthest: float = 0.0) -> Floats:
    r"""Distances from the threshold at which to compute the errors of some tests.

    Parameters
    ----------
    tests : sequence of Looks
        When these tests look.
    furthest : float
        A distance that must be within the range.

    Returns
    -------
    float array, shape (K,)
        Values of :math:`\mu_{std}` from 0 on: evenly spaced at first, then geometrically.
    """
    information = np.concatenate([looks.information for looks in tests])
    first, last = (information.min(), information.max()) if information.size else (1.0, 1.0)
    scale = math.sqrt(last)
    top = max(_FARTHEST_ERROR / math.sqrt(first), furthest)
    nodes = np.sinh(np.linspace(0.0, math.asinh(scale * top), _N_DISTANCES)) / scale
    nodes[-1] = top
    return nodes
