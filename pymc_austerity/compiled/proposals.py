"""Normal proposals as arrays, and drawn in compiled code."""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled.options import INNER
from pymc_austerity.proposals import (
    CrankNicolsonProposal,
    GaussianApproximation,
    Proposal,
    ProposalMixture,
    RandomWalkProposal,
)

__all__ = ["CompiledProposals", "arrays_of", "propose", "refusal_of"]


class CompiledProposals(NamedTuple):
    r"""Normal proposals, one of which is chosen at every step.

    Attributes
    ----------
    cumulative : float array, shape (C,)
        Running sum of the probabilities of the components; the last is infinite.
    sizes : float array, shape (C,)
        :math:`b` of Crank-Nicolson moves, the scale of random walks.
    kept : float array, shape (C,)
        :math:`\sqrt{1 - b^2}`; NaN for random walks.
    roots : float array, shape (C, d, d)
        Lower triangular roots of the covariances of the moves.
    mean : float array, shape (d,)
        Of the normal approximation.
    inverse_root : float array, shape (d, d)
        Of its covariance, lower triangular.
    in_single_precision : bool
        Whether points are rounded to float32.
    """

    cumulative: NDArray[np.float64]
    sizes: NDArray[np.float64]
    kept: NDArray[np.float64]
    roots: NDArray[np.float64]
    mean: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    in_single_precision: bool


def refusal_of(proposal: Proposal[Any]) -> str:
    """Why a proposal has no compiled counterpart, as half a sentence; empty if it has one."""
    components = proposal.components if type(proposal) is ProposalMixture else [proposal]
    for component in components:
        if type(component) not in (CrankNicolsonProposal, RandomWalkProposal):
            return f"{type(component).__name__} has no compiled counterpart"
    return ""


def arrays_of(
    proposal: Proposal[Any], state: Any, approximation: GaussianApproximation, dtype: Any
) -> CompiledProposals:
    """The arrays of a proposal that is not refused, in a state that no longer changes.

    Parameters
    ----------
    proposal : Proposal
    state : object
        Its state.
    approximation : GaussianApproximation
        Normal approximation of the posterior.
    dtype : dtype
        Of the points.
    """
    components, states, cumulative = [proposal], [state], [math.inf]
    if isinstance(proposal, ProposalMixture):
        components, states = list(proposal.components), list(state.states)
        cumulative = list(state.cumulative)
    pairs = list(zip(components, states, strict=True))
    return CompiledProposals(
        np.array(cumulative),
        np.array([component.current_scaling(own) for component, own in pairs]),
        np.array([_kept(component) for component in components]),
        np.stack([_root(own) for own in states]),
        approximation.mean,
        np.ascontiguousarray(approximation.inverse_root),
        bool(np.dtype(dtype) == np.float32),
    )


def _kept(component: Proposal[Any]) -> float:
    if isinstance(component, CrankNicolsonProposal):
        return math.sqrt(1.0 - component.b * component.b)
    return math.nan


def _root(state: Any) -> NDArray[np.float64]:
    root: NDArray[np.float64] = state.root
    return np.ascontiguousarray(np.diag(root) if root.ndim == 1 else root)


@numba.njit(**INNER)
def _log_density(
    mean: NDArray[np.float64], inverse_root: NDArray[np.float64], point: NDArray[np.float64]
) -> float:
    """Of the normal approximation, up to a constant, nats."""
    total = 0.0
    for i in range(point.size):
        standard = 0.0
        for j in range(i + 1):
            standard += inverse_root[i, j] * (point[j] - mean[j])
        total += standard * standard
    return -0.5 * total


@numba.njit(**INNER)
def propose(
    proposals: CompiledProposals,
    point: NDArray[np.float64],
    rng: np.random.Generator,
    noise: NDArray[np.float64],
    new: NDArray[np.float64],
) -> tuple[int, float]:
    """Write a new point into an array, with the random numbers that the Python classes draw.

    Parameters
    ----------
    proposals : CompiledProposals
    point : float array, shape (d,)
        Where the chain is.
    rng : numpy.random.Generator
        Of the chain.
    noise, new : float arrays, shape (d,)
        Working space, and the new point.

    Returns
    -------
    chosen : int
        Component that made the proposal.
    log_ratio : float
        ``log q(point | new) - log q(new | point)``, nats.
    """
    mean, chosen = proposals.mean, 0
    if proposals.cumulative.size > 1:
        uniform = rng.random()
        while uniform >= proposals.cumulative[chosen]:
            chosen += 1
    for j in range(point.size):
        noise[j] = rng.standard_normal()
    size, kept = proposals.sizes[chosen], proposals.kept[chosen]
    for i in range(point.size):
        move = 0.0
        for j in range(i + 1):
            move += proposals.roots[chosen, i, j] * noise[j]
        if math.isnan(kept):
            new[i] = point[i] + size * move
        else:
            new[i] = mean[i] + kept * (point[i] - mean[i]) + size * move
        if proposals.in_single_precision:
            new[i] = np.float32(new[i])
    if math.isnan(kept):
        return chosen, 0.0
    inverse_root = proposals.inverse_root
    before = _log_density(mean, inverse_root, point)
    return chosen, before - _log_density(mean, inverse_root, new)
