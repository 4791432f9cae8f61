"""Error of the acceptance probability of a pair of points, in which errors of both kinds cancel."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.design.boundaries import Boundary
from pymc_austerity.design.error import operating_characteristic
from pymc_austerity.design.looks import Looks

__all__ = ["AcceptanceQuadrature", "acceptance_error", "distance_grid"]

Floats = NDArray[np.float64]

_REACH = 9.0
"""Distance, in standard errors of the first look, beyond which decisions do not err (1e-19 do)."""

_N_NODES = 257


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
    >>> from pymc_austerity.design import Boundary, acceptance_error, constant_looks
    >>> looks = constant_looks(500, 10_000)
    >>> acceptance_error([0.0, -1.0, -5.0], [1.0, 1.0, 1.0], looks, Boundary(0.05)).round(3)
    array([-0.116,  0.039,  0.009])
    """
    information = looks.information
    if information.size == 0:
        return np.zeros(np.size(log_ratio))
    distances = distance_grid(float(information[0]), float(information[-1]))
    error = operating_characteristic(distances, looks, boundary).error
    return AcceptanceQuadrature.of(log_ratio, spread, distances).error(error)


def distance_grid(first: float, last: float, furthest: float = 0.0) -> Floats:
    r"""Distances from the threshold at which to compute the error of a test.

    Parameters
    ----------
    first, last : float
        Smallest and largest information of a look, in units of 1 / spread squared.
    furthest : float
        A distance that must be within the range.

    Returns
    -------
    float array, shape (K,)
        Values of :math:`\mu_{std}` from 0 on: evenly spaced at first, then geometrically.
    """
    scale = math.sqrt(last)
    top = max(_REACH / math.sqrt(first), furthest)
    nodes = np.sinh(np.linspace(0.0, math.asinh(scale * top), _N_NODES)) / scale
    nodes[-1] = top
    return nodes


class AcceptanceQuadrature(NamedTuple):
    r"""Weights that turn errors of decisions into errors of acceptance probabilities.

    :math:`E` is assumed to be linear between the nodes. As :math:`du` is an exponential measure in
    :math:`\mu_{std}`, the integrals are known. Beyond the last node, the error is taken to be zero.

    Attributes
    ----------
    weights : float array, shape (n, K)
        Weights for n pairs of points and K distances.
    """

    weights: Floats

    @classmethod
    def of(
        cls, log_ratio: ArrayLike, spread: ArrayLike, distances: Floats
    ) -> "AcceptanceQuadrature":
        """Weights for pairs of points.

        Parameters
        ----------
        log_ratio, spread : float arrays, shape (n,), nats
            As in `acceptance_error`.
        distances : float array, shape (K,)
            Nodes, increasing from 0.
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
        return cls(weights)

    def error(self, error: Floats) -> Floats:
        r""":math:`\Delta` of every pair from :math:`E` at the nodes; shapes (n,) and (K,)."""
        return self.weights @ error


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
