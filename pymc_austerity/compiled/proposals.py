"""Moves with normal noise in compiled code, and what is known of the posterior at their ends."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from pymc_austerity.compiled.addresses import call_for_number
from pymc_austerity.parts import part, reals
from pymc_austerity.proposals import (
    CrankNicolsonProposal,
    GaussianApproximation,
    Proposal,
    ProposalMixture,
    RandomWalkProposal,
)


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
    n_components, size : int
        C and d.
    """

    cumulative: NDArray[np.float64]
    sizes: NDArray[np.float64]
    kept: NDArray[np.float64]
    roots: NDArray[np.float64]
    mean: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    in_single_precision: bool
    n_components: int
    size: int


def refusal_of(proposal: Proposal[Any]) -> str:
    """Why a proposal has no compiled counterpart, as half a sentence; empty if it has one."""
    components = proposal.components if type(proposal) is ProposalMixture else [proposal]
    for component in components:
        if type(component) not in (CrankNicolsonProposal, RandomWalkProposal):
            return f"{type(component).__name__} has no compiled counterpart"
    return ""


def arrays_of(
    proposal: Proposal[Any], state: Any, approximation: GaussianApproximation | None, start: NDArray
) -> CompiledProposals:
    """The arrays of a proposal that is not refused, in a state that no longer changes.

    Parameters
    ----------
    proposal : Proposal
    state : object
        Its state.
    approximation : GaussianApproximation or None
        Normal approximation of the posterior, if it is known: random walks do not use it.
    start : array, shape (d,)
        A point.
    """
    components, states, cumulative = [proposal], [state], [math.inf]
    if isinstance(proposal, ProposalMixture):
        components, states = list(proposal.components), list(state.states)
        cumulative = list(state.cumulative)
    pairs = list(zip(components, states, strict=True))
    mean, inverse_root = start.astype(np.float64), np.zeros((start.size, start.size))
    if approximation is not None:
        mean, inverse_root = approximation.mean, approximation.inverse_root
    return CompiledProposals(
        np.array(cumulative),
        np.array([component.current_scaling(own) for component, own in pairs]),
        np.array([_kept(component) for component in components]),
        np.stack([_root(own) for own in states]),
        np.ascontiguousarray(mean),
        np.ascontiguousarray(inverse_root),
        bool(start.dtype == np.float32),
        len(components),
        start.size,
    )


def _kept(component: Proposal[Any]) -> float:
    if isinstance(component, CrankNicolsonProposal):
        return math.sqrt(1.0 - component.b * component.b)
    return math.nan


def _root(state: Any) -> NDArray[np.float64]:
    root: NDArray[np.float64] = state.root
    return np.ascontiguousarray(np.diag(root) if root.ndim == 1 else root)


@part(types.float64)
def _log_density(proposals: CompiledProposals, point: Any) -> float:
    """Of the normal approximation, up to a constant, nats."""
    mean, inverse_root = reals(proposals.mean), reals(proposals.inverse_root)
    total, d = 0.0, proposals.size
    for i in range(d):
        standard = 0.0
        for j in range(i + 1):
            standard += inverse_root[i * d + j] * (point[j] - mean[j])
        total += standard * standard
    return -0.5 * total


@part(types.Tuple((types.int64, types.float64)))
def propose(
    proposals: CompiledProposals, point: Any, rng: np.random.Generator, noise: Any, new: Any
) -> tuple[int, float]:
    """Write a new point into an array, with the random numbers that the Python classes draw.

    Parameters
    ----------
    proposals : CompiledProposals
    point : pointer to d floats
        Where the chain is.
    rng : numpy.random.Generator
        Of the chain.
    noise, new : pointers to d floats
        Working space, and the new point.

    Returns
    -------
    chosen : int
        Component that made the proposal.
    log_ratio : float
        ``log q(point | new) - log q(new | point)``, nats.
    """
    cumulative, mean, roots = (
        reals(proposals.cumulative),
        reals(proposals.mean),
        reals(proposals.roots),
    )
    chosen, d = 0, proposals.size
    if proposals.n_components > 1:
        uniform = rng.random()
        while uniform >= cumulative[chosen]:
            chosen += 1
    for j in range(d):
        noise[j] = rng.standard_normal()
    size, kept = reals(proposals.sizes)[chosen], reals(proposals.kept)[chosen]
    for i in range(d):
        move, first = 0.0, (chosen * d + i) * d
        for j in range(i + 1):
            move += roots[first + j] * noise[j]
        if math.isnan(kept):
            new[i] = point[i] + size * move
        else:
            new[i] = mean[i] + kept * (point[i] - mean[i]) + size * move
        if proposals.in_single_precision:
            new[i] = np.float32(new[i])
    if math.isnan(kept):
        return chosen, 0.0
    before = _log_density(proposals, point)
    return chosen, before - _log_density(proposals, new)


class CompiledPosterior(NamedTuple):
    """What is known of the log-posterior without reading rows.

    Attributes
    ----------
    exact : int
        Address of the row-free part; see `pymc_austerity.model.DensityKernel.address`.
    anchor, gradient : float array, shape (d,)
        Of the expansion.
    hessian : float array, shape (d, d)
        Zeros for an expansion of first order.
    size : int
        d.
    """

    exact: int
    anchor: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    size: int


@part(types.float64)
def _expansion(posterior: CompiledPosterior, proposed: Any, current: Any) -> float:
    """What the control variates sum up to over all rows, nats."""
    anchor, d = reals(posterior.anchor), posterior.size
    gradient, hessian = reals(posterior.gradient), reals(posterior.hessian)
    first, second = 0.0, 0.0
    for i in range(d):
        product = 0.0
        for j in range(d):
            about = (proposed[j] - anchor[j]) + (current[j] - anchor[j])
            product += hessian[i * d + j] * about
        moved = proposed[i] - current[i]
        first += gradient[i] * moved
        second += moved * product
    return first + 0.5 * second


class NormalMoves(NamedTuple):
    """Proposals with normal noise, and what is known of the posterior.

    Attributes
    ----------
    proposals : CompiledProposals
    posterior : CompiledPosterior
    """

    proposals: CompiledProposals
    posterior: CompiledPosterior

    @property
    def size(self) -> int:
        """Dimension, d."""
        return self.proposals.size

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Size of the moves of each component."""
        return self.proposals.sizes


class Move(NamedTuple):
    """A proposal: its component, and the log-ratio but for the rows that are sampled, nats.

    Of the row-free part, its values at the current point, NaN where it is not needed, and then.
    """

    component: int
    log_ratio: float
    exact_now: float
    exact_then: float


MOVE = typeof(Move(0, 0.0, 0.0, 0.0))


def move_by_noise(its: NormalMoves, work: int, exact_now: float, rng: np.random.Generator) -> Move:
    """Propose a point; see `pymc_austerity.compiled.transitions.CurrentPoint`."""
    d, posterior = its.posterior.size, its.posterior
    current, proposed = reals(work), reals(work + 8 * d)
    if exact_now != exact_now:
        exact_now = call_for_number(posterior.exact, (work,))
    component, log_ratio = propose(its.proposals, current, rng, reals(work + 16 * d), proposed)
    exact_then = call_for_number(posterior.exact, (work + 8 * d,))
    log_ratio += exact_then - exact_now
    if math.isfinite(log_ratio):
        log_ratio += _expansion(posterior, proposed, current)
    return Move(component, log_ratio, exact_now, exact_then)
