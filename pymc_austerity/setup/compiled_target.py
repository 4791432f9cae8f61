"""A target for compiled code, or the reason why it needs Python."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import (
    CompiledPosterior,
    CompiledRows,
    CompiledTarget,
    CompiledTest,
    CompiledTrajectories,
    ExactDecisions,
    SequentialDecisions,
    new_survey,
    table_of,
)
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.sampling import Sampling, StratifiedSampling
from pymc_austerity.model import DensityKernel, Kernel
from pymc_austerity.proposals import HamiltonianState, Proposal, SurrogateHamiltonianProposal
from pymc_austerity.proposals.hamiltonian import Surrogate
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.surrogate import SurrogatePosterior
from pymc_austerity.setup.target import Target

__all__ = [
    "exact_target",
    "places_of",
    "sequential_target",
    "trajectories",
    "why_python",
]


_BY_PYTENSOR = "the terms that are evaluated in full need PyTensor"


def why_python(target: Target, proposal: Proposal[Any]) -> str:
    """Why transitions need Python, as a clause; empty if they do not."""
    if not isinstance(target.sampling, StratifiedSampling | PoissonSampling):
        return "rows are not sampled in strata"
    if not isinstance(target.row_function, Kernel):
        return "there is no compiled loop over rows"
    if isinstance(proposal, SurrogateHamiltonianProposal):
        return _why_no_trajectories(target, proposal.surrogate)
    if not isinstance(target.row_free_difference, DensityKernel):
        return _BY_PYTENSOR
    return ""


def _why_no_trajectories(target: Target, surrogate: Surrogate) -> str:
    anchor = target.anchor
    if not isinstance(surrogate, SurrogatePosterior) or surrogate.exact.address is None:
        return _BY_PYTENSOR
    if anchor is None or not np.array_equal(anchor.point, surrogate.expansion.point):
        return "trajectories and decisions are about different points"
    if anchor.order != 2:
        return f"expansions are of order {anchor.order}"
    if target.start.dtype != np.float64:
        return "points are in single precision"
    return ""


def trajectories(
    target: Target, proposal: SurrogateHamiltonianProposal, state: HamiltonianState
) -> CompiledTrajectories:
    """Trajectories whose metric and step size no longer change."""
    surrogate, anchor = proposal.surrogate, target.anchor
    assert isinstance(surrogate, SurrogatePosterior) and anchor is not None
    return CompiledTrajectories(
        surrogate.exact.address,
        *surrogate.expansion,
        surrogate.scaled,
        np.ascontiguousarray(anchor.hessian - surrogate.expansion.hessian),
        np.ascontiguousarray(state.root),
        state.averaging.size,
        float(proposal.time),
        proposal.n_trajectories,
    )


def sequential_target(
    target: Target, sampling: Sampling, test: CompiledTest, audit: float
) -> CompiledTarget:
    """A target whose rows are sampled in strata, and whose decisions do not need Python."""
    kernel, arrays = _kernel(target), _arrays(target)
    strata, entries = sampling.strata, _entries(target)
    rows = CompiledRows(
        kernel.address,
        kernel.starts,
        entries,
        table_of(arrays),
        places_of(arrays),
        strata.sizes.astype(np.int64),
        strata.offsets.astype(np.int64),
        strata.first_counts.astype(np.int64),
        n_entries=entries.size,
        n_arrays=len(arrays),
        n_strata=strata.sizes.size,
    )
    decisions = SequentialDecisions(new_survey(rows, strata), test, audit)
    return CompiledTarget(_posterior(target), decisions, _alive(target))


def exact_target(target: Target, inflation: float) -> CompiledTarget:
    """A target whose decisions are exact and do not need Python."""
    arrays = _arrays(target)
    sampling, kernel = target.sampling, _kernel(target)
    assert isinstance(sampling, PoissonSampling)
    groups, entries, size = sampling.groups, _entries(target), target.start.size
    decisions = ExactDecisions(
        function=kernel.address,
        terms=entries,
        row_starts=kernel.starts,
        table=table_of(arrays),
        places=places_of(arrays),
        inverse_root=np.ascontiguousarray(sampling.inverse_root),
        center=np.ascontiguousarray(sampling.center, dtype=np.float64),
        inflation=float(inflation),
        starts=groups.starts,
        radii=groups.radii,
        largest=groups.largest,
        directions=groups.directions,
        direction=groups.direction,
        cosines=groups.cosines,
        sines=groups.sines,
        bounds=np.zeros(groups.n_groups),
        totals=np.zeros(groups.n_groups),
        u=np.zeros(size),
        v=np.zeros(size),
        proposed=np.zeros(entries.size),
        current=np.zeros(entries.size),
        size=size,
        n_terms=entries.size,
        n_arrays=len(arrays),
        n_groups=groups.n_groups,
        n_radii=groups.radii.size,
        is_single=groups.is_single,
        rounding=float(groups.rounding),
    )
    return CompiledTarget(_posterior(target), decisions, _alive(target))


def _posterior(target: Target) -> CompiledPosterior | None:
    exact, anchor = target.row_free_difference, target.anchor
    if not isinstance(exact, DensityKernel):
        return None  # there are trajectories
    assert anchor is not None
    hessian = anchor.hessian if anchor.order > 1 else np.zeros_like(anchor.hessian)
    return CompiledPosterior(
        exact.address,
        np.ascontiguousarray(anchor.point, dtype=np.float64),
        np.ascontiguousarray(anchor.gradient),
        np.ascontiguousarray(hessian),
        anchor.point.size,
    )


def _kernel(target: Target) -> Kernel:
    assert isinstance(target.row_function, Kernel)
    return target.row_function


def _entries(target: Target) -> NDArray[np.int64]:
    """Entries of a point in the order of the terms that rows read."""
    entries = _kernel(target).entries
    return np.arange(target.start.size) if entries is None else entries.astype(np.int64)


def _arrays(target: Target) -> tuple[NDArray, ...]:
    """All rows, where they are stored."""
    assert isinstance(target.source, SharedRows)
    return target.source.window(0, target.source.n_rows)


def _alive(target: Target) -> tuple[object, ...]:
    return target.row_function, target.row_free_difference, target.source, target.surrogate


def places_of(arrays: tuple[NDArray, ...]) -> NDArray[np.int64]:
    """Address of each array, and the bytes of a row."""
    return np.array([(array.ctypes.data, array.strides[0]) for array in arrays], dtype=np.int64)
