"""A target for compiled code, or the reason why it needs Python."""

from dataclasses import dataclass
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
    evaluator,
    new_survey,
    table_of,
)
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.sampling import Sampling, StratifiedSampling
from pymc_austerity.model import DensityKernel, Kernel
from pymc_austerity.proposals import HamiltonianState, Proposal, SurrogateHamiltonianProposal
from pymc_austerity.proposals.hamiltonian import Surrogate
from pymc_austerity.rows import Reading, RowSource, SharedRows, StoredRows, reader
from pymc_austerity.setup.surrogate import SurrogatePosterior
from pymc_austerity.setup.target import Target

__all__ = [
    "RowsByAddress",
    "exact_target",
    "sequential_target",
    "trajectories",
    "why_python",
]

_AT_ONCE = 4_096
"""Rows that are read from files before they are evaluated."""

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
    kernel, strata, entries = _kernel(target), sampling.strata, _entries(target)
    stored = RowsByAddress.of(kernel, target.source)
    rows = CompiledRows(
        stored.function,
        kernel.starts,
        entries,
        stored.table,
        stored.places,
        strata.sizes.astype(np.int64),
        strata.offsets.astype(np.int64),
        strata.first_counts.astype(np.int64),
        n_entries=entries.size,
        n_arrays=len(stored.places),
        n_strata=strata.sizes.size,
    )
    decisions = SequentialDecisions(new_survey(rows, strata), test, audit)
    return CompiledTarget(_posterior(target), decisions, stored.refuse_unread, _alive(target))


def exact_target(target: Target, inflation: float) -> CompiledTarget:
    """A target whose decisions are exact and do not need Python."""
    sampling, kernel = target.sampling, _kernel(target)
    stored = RowsByAddress.of(kernel, target.source)
    assert isinstance(sampling, PoissonSampling)
    groups, entries, size = sampling.groups, _entries(target), target.start.size
    decisions = ExactDecisions(
        function=stored.function,
        terms=entries,
        row_starts=kernel.starts,
        table=stored.table,
        places=stored.places,
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
        n_arrays=len(stored.places),
        n_groups=groups.n_groups,
        n_radii=groups.radii.size,
        is_single=groups.is_single,
        rounding=float(groups.rounding),
    )
    return CompiledTarget(_posterior(target), decisions, stored.refuse_unread, _alive(target))


@dataclass(frozen=True, eq=False)
class RowsByAddress:
    """Stored rows and the compiled function that evaluates them.

    Attributes
    ----------
    function : int
        Address of the function; see `pymc_austerity.model.Kernel.address`.
    table : int array
        Its table: of the arrays in memory, or of what reads them from files.
    places : int array, shape (A, 2)
        Address of each array in memory, and the bytes of a row.
    source : SharedRows or StoredRows
    reading : Reading or None
        Working space for rows in files.
    alive : tuple
        What has to live as long as the addresses are in use.
    """

    function: int
    table: NDArray[np.int64]
    places: NDArray[np.int64]
    source: SharedRows | StoredRows
    reading: Reading | None
    alive: tuple[object, ...]

    @classmethod
    def of(cls, kernel: Kernel, source: RowSource) -> "RowsByAddress":
        """The rows of a store, as the kernel takes them."""
        if isinstance(source, SharedRows):
            arrays = source.window(0, source.n_rows)
            places = [(array.ctypes.data, array.strides[0]) for array in arrays]
            table = table_of(arrays), np.array(places, dtype=np.int64)
            return cls(kernel.address, *table, source, None, (kernel,))
        assert isinstance(source, StoredRows)
        reading = source.reading(_AT_ONCE)
        known, numbers = table_of(reading.block), np.arange(_AT_ONCE, dtype=np.uint64)
        of_kernel = kernel.address, known.ctypes.data, numbers.ctypes.data, _AT_ONCE
        buffers = [array.ctypes.data for array in reading[:5]]
        read = np.array([*of_kernel, reader().address, *buffers], dtype=np.int64)
        nowhere, alive = np.empty((0, 2), dtype=np.int64), (kernel, known, numbers)
        return cls(evaluator().address, read, nowhere, source, reading, alive)

    def refuse_unread(self) -> None:
        """Raise StorageError if rows could not be read since this was made."""
        if isinstance(self.source, StoredRows) and self.reading is not None:
            self.source.refuse_if_failed(self.reading)


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


def _alive(target: Target) -> tuple[object, ...]:
    return target.row_function, target.row_free_difference, target.source, target.surrogate
