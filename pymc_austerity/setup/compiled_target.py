"""A target for compiled code, or the reason why it needs Python."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import (
    MOST_APART,
    AnyDecisions,
    CommonByAddress,
    CompiledBarkerTest,
    CompiledChain,
    CompiledPosterior,
    CompiledSurvey,
    CompiledTarget,
    CompiledTrajectories,
    ExactDecisions,
    NormalMoves,
    RandomDecisions,
    RowsByAddress,
    SequentialDecisions,
    UniformCompiledSurvey,
    addressed,
    arrays_of,
    compiled_test,
    evaluate_rows,
    evaluator,
    new_decisions,
    new_survey,
    new_uniform_survey,
    refusal_of,
    refusal_of_test,
    table_of,
)
from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.exact import AnyDecider, ExactDecider, FireflyDecider
from pymc_austerity.deciding.sampling import Sampling, StratifiedSampling, UniformSampling
from pymc_austerity.exact import MOST_RATIOS, BoundViolatedError, ExactDecision, thinning
from pymc_austerity.model import DensityKernel, Kernel
from pymc_austerity.proposals import (
    HamiltonianState,
    Proposal,
    RandomWalkProposal,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.proposals.hamiltonian import Surrogate
from pymc_austerity.rows import (
    FreshRows,
    Reading,
    SharedRows,
    Store,
    StoredRows,
    Windows,
    reader,
)
from pymc_austerity.sequential import Decision
from pymc_austerity.setup.surrogate import SurrogatePosterior
from pymc_austerity.setup.target import Target

_AT_ONCE = 4_096
"""Rows that are read from files before they are evaluated."""

_COPIED = 65_536
"""Rows that are copied together, if they lie apart."""

_BY_PYTENSOR = "the terms that are evaluated in full need PyTensor"


def why_transitions_need_python(
    target: Target, decider: AnyDecider, proposal: Proposal[Any]
) -> str:
    """Why transitions need Python, as a clause; empty if they do not."""
    if why := why_decisions_need_python(target, decider):
        return why
    if isinstance(proposal, SurrogateHamiltonianProposal):
        return _why_no_trajectories(target, proposal.surrogate)
    if refusal := refusal_of(proposal):
        return refusal
    if not target.layout.is_continuous:
        return "some variables are discrete"
    if isinstance(target.sampling, UniformSampling) and target.sampling.is_exact:
        return "all rows are read, and points are to be those of plain Metropolis-Hastings"
    if not isinstance(target.row_free_difference, DensityKernel):
        return _BY_PYTENSOR
    return ""


def why_decisions_need_python(target: Target, decider: AnyDecider) -> str:
    """Why decisions need Python, as a clause; empty if they do not."""
    if isinstance(decider, FireflyDecider):
        return "fireflies have no compiled counterpart"
    if isinstance(decider, Decider) and (refusal := refusal_of_test(decider.test)):
        return refusal
    if not isinstance(target.row_function, Kernel):
        return "there is no compiled loop over rows"
    return ""


def _why_no_trajectories(target: Target, surrogate: Surrogate) -> str:
    anchor = target.anchor
    if not isinstance(surrogate, SurrogatePosterior) or surrogate.by_address is None:
        return _BY_PYTENSOR
    if anchor is None or not np.array_equal(anchor.point, surrogate.expansion.point):
        return "trajectories and decisions are about different points"
    if anchor.order != 2:
        return f"expansions are of order {anchor.order}"
    if target.start.dtype != np.float64:
        return "points are in single precision"
    return ""


def moves_of(
    target: Target, proposal: Proposal[Any], state: Any
) -> NormalMoves | CompiledTrajectories:
    """Proposals that compiled code makes, with a state that no longer changes."""
    if isinstance(proposal, SurrogateHamiltonianProposal):
        return _trajectories(target, proposal, state)
    proposals = arrays_of(proposal, state, target.approximation, target.start)
    return NormalMoves(proposals, _posterior(target))


def _trajectories(
    target: Target, proposal: SurrogateHamiltonianProposal, state: HamiltonianState
) -> CompiledTrajectories:
    """Trajectories whose metric and step size no longer change."""
    surrogate, anchor = proposal.surrogate, target.anchor
    assert isinstance(surrogate, SurrogatePosterior) and anchor is not None
    known = surrogate.by_address
    assert known is not None
    return CompiledTrajectories(
        known,
        *surrogate.expansion,
        surrogate.scaled,
        np.ascontiguousarray(anchor.hessian - surrogate.expansion.hessian),
        np.ascontiguousarray(state.root),
        state.averaging.size,
        float(proposal.time),
        proposal.n_trajectories,
    )


def compiled_target(target: Target, decider: AnyDecider, *, n_ratios: int = 0) -> CompiledTarget:
    """A target that does not need Python, with decisions as they are now.

    For the number of ratios see `pymc_austerity.compiled.ExactDecisions`.
    """
    kernel, source = target.row_function, target.source
    assert isinstance(kernel, Kernel) and isinstance(source, SharedRows | StoredRows)
    stored = KernelOnRows(kernel, source, target.start.size)
    alive = stored, target.row_free_difference, target.surrogate
    decisions = _decisions(stored.by_address, decider, n_ratios)
    return CompiledTarget(decisions, stored.refuse_unread, alive)


def _decisions(rows: RowsByAddress, decider: AnyDecider, n_ratios: int) -> AnyDecisions:
    if isinstance(decider, ExactDecider):
        its, inflation = decider.sampling, decider.state.inflation.value
        whitening, rounding = (its.inverse_root, its.center), its.groups.rounding
        return new_decisions(rows, its.groups.arrays, *whitening, inflation, rounding, n_ratios)
    test, survey = compiled_test(decider.state.test), _survey(rows, decider.sampling)
    if isinstance(test, CompiledBarkerTest):
        return RandomDecisions(survey, test)
    return SequentialDecisions(survey, test, float(decider.audits.share))


def _survey(rows: RowsByAddress, sampling: Sampling) -> CompiledSurvey | UniformCompiledSurvey:
    if isinstance(sampling, StratifiedSampling):
        return new_survey(rows, sampling.strata)
    draw = sampling.draw
    runs = draw.runs if isinstance(draw, Windows) else (0 if isinstance(draw, FreshRows) else -1, 1)
    return new_uniform_survey(rows, sampling.n_rows, sampling.batch_size, sampling.growth, *runs)


@dataclass(frozen=True, eq=False)
class KernelOnRows:
    """A kernel, and the stored rows that it reads.

    Attributes
    ----------
    kernel : Kernel
    source : SharedRows or StoredRows
        Addresses are valid as long as the source is open.
    size : int
        Entries of a point, d.
    """

    kernel: Kernel
    source: Store
    size: int

    def __call__(
        self, proposed: NDArray[np.float64], current: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Values of rows, by their positions, between two points, shape (n,), nats."""
        is_near = rows.size <= MOST_APART or rows[-1] - rows[0] == rows.size - 1
        if is_near or isinstance(self.source, StoredRows):
            rows = np.ascontiguousarray(rows, dtype=np.int64)  # which are read by their address
            found: NDArray[np.float64] = evaluate_rows(self._address, proposed, current, rows)
            self.refuse_unread()
            return found
        copies = (self.source.take(rows[k : k + _COPIED]) for k in range(0, rows.size, _COPIED))
        return np.concatenate([self.kernel(proposed, current, *copy) for copy in copies])

    def refuse_unread(self) -> None:
        """Raise StorageError if rows could not be read since this was made."""
        if isinstance(self.source, StoredRows):
            self.source.refuse_if_failed(self._reading)

    @cached_property
    def by_address(self) -> RowsByAddress:
        """The same for compiled code."""
        kernel, source = self.kernel, self.source
        entries = np.arange(self.size) if kernel.entries is None else kernel.entries
        common = _common(kernel)
        function, places = kernel.address, np.empty((0, 2), dtype=np.int64)
        if isinstance(source, SharedRows):
            arrays = source.window(0, source.n_rows)
            of_arrays = [(array.ctypes.data, array.strides[0]) for array in arrays]
            table, places = table_of(arrays), np.array(of_arrays, dtype=np.int64)
        else:
            known, numbers = self._in_memory
            own = function, known.ctypes.data, numbers.ctypes.data, _AT_ONCE, reader().address
            buffers = [array.ctypes.data for array in self._reading[:5]]
            function, table = evaluator().address, np.array([*own, *buffers], dtype=np.int64)
        order = kernel.starts, entries.astype(np.int64)
        return RowsByAddress(function, *order, table, places, entries.size, len(places), common)

    @cached_property
    def _reading(self) -> Reading:
        """Working space for rows in files."""
        assert isinstance(self.source, StoredRows)
        return self.source.reading(_AT_ONCE)

    @cached_property
    def _in_memory(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Table of rows that were read, and their numbers."""
        return table_of(self._reading.block), np.arange(_AT_ONCE, dtype=np.uint64)

    @cached_property
    def _address(self) -> Any:
        return addressed(self.by_address)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {"kernel": self.kernel, "source": self.source, "size": self.size}


def _common(kernel: Kernel) -> CommonByAddress:
    """The functions that rows share, whose arrays live as long as the kernel does."""
    common = kernel.common
    if common is None:
        none: Any = np.empty(0)
        return CommonByAddress(none, none, none, none, 0, 0)
    size = common.combinations.shape
    numbers = np.arange(size[0], dtype=np.uint64)
    return CommonByAddress(
        common.anchor, table_of(common.block), numbers, common.combinations, *size
    )


def _posterior(target: Target) -> CompiledPosterior:
    """What is known; of the row-free part nothing where Python evaluates it."""
    exact, anchor, d = target.row_free_difference, target.anchor, target.start.size
    address = exact.address if isinstance(exact, DensityKernel) else 0
    if anchor is None:
        return CompiledPosterior(address, np.zeros(d), np.zeros(d), np.zeros((d, d)), d)
    hessian = anchor.hessian if anchor.order > 1 else np.zeros_like(anchor.hessian)
    return CompiledPosterior(
        address,
        np.ascontiguousarray(anchor.point, dtype=np.float64),
        np.ascontiguousarray(anchor.gradient),
        np.ascontiguousarray(hessian),
        d,
    )


def decisions_for_python(
    target: Target, proposal: Proposal[Any], decider: AnyDecider
) -> "DecisionsForPython | None":
    """Compiled decisions on proposals that Python makes; None where decisions need Python."""
    if why_decisions_need_python(target, decider):
        return None
    if why_transitions_need_python(target, decider, proposal):
        proposal = RandomWalkProposal()  # moves are not made: what matters is their type
    return DecisionsForPython(target, proposal)


class DecisionsForPython:
    """Compiled decisions on proposals that Python makes: see `CompiledDecisions`.

    Their code is that of compiled transitions, so that nothing else is compiled.

    Parameters
    ----------
    target : Target
    proposal : Proposal
        Moves of its kind are the others that this code makes.
    """

    def __init__(self, target: Target, proposal: Proposal[Any]) -> None:
        self._target, self._proposal = target, proposal
        self._chain: CompiledChain | None = None
        self._made_for: Any = None
        self._test: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {**vars(self), "_chain": None}

    def decide(
        self,
        decider: Decider,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
    ) -> Decision:
        """A decision, audited if the decider wants it."""
        test, audits = decider.state.test, decider.audits
        chain = self._with(decider, (decider.state.batch_size, type(test), audits.share))
        if test is not self._test:
            self._test, own = test, addressed(compiled_test(test))
            chain.decisions = chain.decisions._replace(test=own)
        found = chain.decide(proposed, current, log_known, rng, audits.rng)
        assert found is not None  # only bounds can be violated
        accepted, n_rows, n_looks, error, standardized, is_audited, is_wrong, _ = found
        accept, of_all = bool(accepted), bool(accepted) != bool(is_wrong)
        seen = int(n_rows), int(n_looks), error, standardized, error == 0.0
        return Decision(accept, *seen, of_all if is_audited else None)

    def decide_exactly(
        self,
        decider: ExactDecider,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
    ) -> ExactDecision:
        """An exact decision.

        Raises
        ------
        BoundViolatedError
            A row changes by more than its bound.
        """
        chain = self._with(decider, None)
        chain.decisions = chain.decisions._replace(inflation=decider.state.inflation.value)
        made = chain.decide(proposed, current, log_known, rng, rng)
        assert isinstance(chain.target.decisions, ExactDecisions)
        found = chain.target.decisions.found
        if made is None:
            raise BoundViolatedError(int(found[0]), float(found[1]), float(found[2]))
        n_candidates = int(found[1])
        n_ratios = len(range(0, n_candidates, thinning(n_candidates, MOST_RATIOS)))
        ratios = found[2 : 2 + n_ratios].copy()
        return ExactDecision(bool(made[0]), int(made[1]), float(found[0]), ratios, n_candidates)

    def _with(self, decider: AnyDecider, needed: Any) -> CompiledChain:
        if self._chain is None or needed != self._made_for:
            state = self._proposal.init(self._target.layout, self._target.approximation)
            moves = moves_of(self._target, self._proposal, state)
            target = compiled_target(self._target, decider, n_ratios=MOST_RATIOS)
            self._chain = CompiledChain(target, moves)
            self._made_for, self._test = needed, None
        return self._chain
