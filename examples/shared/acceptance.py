"""Errors of acceptance probabilities (equation 6), and tests designed for them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.design import Boundary, Looks, TestDesign, constant_looks
from pymc_austerity.design.error import distance_grid, operating_characteristic
from pymc_austerity.design.optimal import ALPHAS, DesignProblem, cheapest

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrialRun:
    r"""Decisions of a trial run, each with the values of all rows.

    Attributes
    ----------
    mean, standard_deviation : float arrays, shape (n,), nats
        Of the differences of all rows, for every triple :math:`(\theta, \theta', u)`.
    log_threshold, log_u : float arrays, shape (n,), nats
        What the sum of the differences must exceed, and :math:`\log u` in it.
    n_rows : int
        Number of all rows, N.
    """

    mean: Floats
    standard_deviation: Floats
    log_threshold: Floats
    log_u: Floats
    n_rows: int

    @property
    def spread(self) -> Floats:
        r""":math:`N \sigma_l / \sqrt{N - 1}`, the unit of `mu_std`; shape (n,), nats."""
        return self.n_rows / np.sqrt(self.n_rows - 1) * self.standard_deviation

    @property
    def mu_std(self) -> Floats:
        """Distance from the threshold in units of the spread, shape (n,)."""
        return (self.mean * self.n_rows - self.log_threshold) / self.spread

    @property
    def log_ratio(self) -> Floats:
        """Log of the Metropolis-Hastings ratio, shape (n,), nats."""
        return self.mean * self.n_rows - self.log_threshold + self.log_u


def acceptance_error(
    log_ratio: ArrayLike, spread: ArrayLike, looks: Looks, boundary: Boundary
) -> Floats:
    r"""Error of the acceptance probability that a sequential test causes.

    .. math::
        \Delta = \int_{P_a}^1 E(\mu_{std}(u)) \, du - \int_0^{P_a} E(\mu_{std}(u)) \, du, \qquad
        \mu_{std}(u) = \frac{\log r - \log u}{s}, \quad P_a = \min(1, r)

    (equation 6), with :math:`r` the Metropolis-Hastings ratio and :math:`s` the spread. Proposals
    rejected by the exact test and accepted by the sequential one count as positive.

    Parameters
    ----------
    log_ratio : float array, shape (n,), nats
        :math:`\log r` of every pair on all rows: the sum of the differences minus the threshold at
        :math:`u = 1`.
    spread : float array, shape (n,), nats
        :math:`s = N \sigma_l / \sqrt{N - 1}` of every pair. Where it is 0, the test reads all rows.
    looks : Looks
        When the test looks.
    boundary : Boundary
        Distance at which it stops.

    Returns
    -------
    float array, shape (n,)
        Acceptance probability minus :math:`P_a`.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.1, equation 6.

    Examples
    --------
    >>> from examples.shared.acceptance import acceptance_error
    >>> from pymc_austerity.design import Boundary, constant_looks
    >>> looks = constant_looks(500, 10_000)
    >>> acceptance_error([0.0, -1.0, -5.0], [1.0, 1.0, 1.0], looks, Boundary(0.05)).round(3)
    array([-0.116,  0.039,  0.009])
    """
    if len(looks) == 1:
        return np.zeros(np.size(log_ratio))
    distances = distance_grid([looks])
    error = operating_characteristic(distances, looks, boundary).error
    return quadrature(log_ratio, spread, distances) @ error


def quadrature(log_ratio: ArrayLike, spread: ArrayLike, distances: Floats) -> Floats:
    r"""Weights that turn errors of decisions into errors of acceptance probabilities, shape (n, K).

    :math:`E` is assumed to be linear between the K distances, which increase from 0. As :math:`du`
    is an exponential measure in :math:`\mu_{std}`, the integrals are known. Beyond the last
    distance, the error is taken to be zero.
    """
    log_ratio = np.atleast_1d(np.asarray(log_ratio, dtype=np.float64))
    spread = np.broadcast_to(np.asarray(spread, dtype=np.float64), log_ratio.shape)
    positive = spread > 0.0
    rate = np.where(positive, spread, 1.0)[:, None]
    accepted = np.minimum(np.exp(np.minimum(log_ratio, 0.0)), 1.0)[:, None]
    weights = _falling(np.maximum(log_ratio, 0.0)[:, None] / rate, rate, distances)
    weights *= -accepted
    weights += _rising(np.maximum(-log_ratio, 0.0)[:, None] / rate, rate, distances)
    weights[~positive] = 0.0
    return weights


def _falling(start: Floats, rate: Floats, nodes: Floats) -> Floats:
    """Weights of the integral of E(x) rate exp(-rate (x - start)) from start on."""
    low, high = np.maximum(nodes[:-1], start), np.maximum(nodes[1:], start)
    near, far = _exponential_moments(rate * (high - low))
    scale = np.exp(-rate * (low - start))
    return _at_nodes(low, near * scale, nodes) + _at_nodes(high, far * scale, nodes)


def _rising(end: Floats, rate: Floats, nodes: Floats) -> Floats:
    """Weights of the integral of E(x) rate exp(-rate (end - x)) from 0 to end."""
    low, high = np.minimum(nodes[:-1], end), np.minimum(nodes[1:], end)
    near, far = _exponential_moments(rate * (high - low))
    scale = np.exp(-rate * (end - high))
    return _at_nodes(high, near * scale, nodes) + _at_nodes(low, far * scale, nodes)


def _exponential_moments(length: Floats) -> tuple[Floats, Floats]:
    """Integrals of exp(-x) (1 - x / length) and exp(-x) x / length from 0 to length."""
    gone = -np.expm1(-length)
    safe = np.where(length > 1e-6, length, 1.0)
    far = np.where(length > 1e-6, gone / safe - (1.0 - gone), 0.5 * length)
    return gone - far, far


def _at_nodes(points: Floats, weights: Floats, nodes: Floats) -> Floats:
    """Divide the weights of points, one in every cell, between the two nodes of the cell."""
    part = np.clip((points - nodes[:-1]) / np.diff(nodes), 0.0, 1.0)
    shared = np.zeros((points.shape[0], nodes.size))
    shared[:, :-1] = weights * (1.0 - part)
    shared[:, 1:] += weights * part
    return shared


def design_for_acceptance(
    trial: TrialRun,
    max_error: float,
    *,
    batch_sizes: Sequence[int],
    alphas: Sequence[float] = ALPHAS,
) -> TestDesign:
    r"""The cheapest test whose mean of :math:`|\Delta|` over a trial run is at most `max_error`.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.2.
    """
    question = DesignProblem.of(trial.mu_std, trial.n_rows, constant_looks, batch_sizes)
    weights = quadrature(trial.log_ratio, trial.spread, question.distances)

    def risk(batch_size: int, boundary: Boundary) -> float:
        looks = constant_looks(batch_size, trial.n_rows)
        error = operating_characteristic(question.distances, looks, boundary).error
        return float(np.abs(weights @ error).mean())

    return cheapest(question, risk, max_error, alphas)
