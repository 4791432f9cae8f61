"""A step method's transitions after tuning, assembled for compiled code."""

from functools import partial
from typing import Any

import numpy as np

from pymc_austerity.compiled import (
    CompiledChain,
    CompiledTarget,
    Transitions,
    address_of_tail,
    arrays_of,
    compiled_test,
    refusal_of,
)
from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.exact import AnyDecider, ExactDecider, FireflyDecider
from pymc_austerity.proposals import Proposal, SurrogateHamiltonianProposal
from pymc_austerity.sequential import StudentTTest
from pymc_austerity.setup.compiled_target import (
    exact_target,
    sequential_target,
    trajectories,
    why_target_needs_python,
)
from pymc_austerity.setup.target import Target
from pymc_austerity.step_methods.draw_buffer import DrawBuffer
from pymc_austerity.step_methods.statistics import of_transitions
from pymc_austerity.step_methods.together import IndependentChain, is_independent
from pymc_austerity.time_limit import uncounted


def why_python(target: Target, decider: AnyDecider, proposal: Proposal[Any]) -> str:
    """Why transitions need Python after tuning, as a clause; empty if they do not."""
    if is_independent(target, proposal):
        return ""
    if isinstance(decider, FireflyDecider):
        return "fireflies have no compiled counterpart"
    if isinstance(decider, Decider):
        if type(decider.test) is not StudentTTest:
            return "the test has no compiled counterpart"
        if decider.schedule is not None and not decider.settings.tightens:
            return "epsilon is a function"
        if address_of_tail() is None:
            return "this version of SciPy does not offer Student's t to compiled code"
    if not isinstance(proposal, SurrogateHamiltonianProposal) and (refusal := refusal_of(proposal)):
        return refusal
    return why_target_needs_python(target, proposal)


def compile_now(target: Target, decider: AnyDecider, proposal: Proposal[Any]) -> None:
    """Compile what the chains will need, or read what an earlier process compiled."""
    state = proposal.init(target.layout, target.approximation)
    rng = np.random.default_rng(0)
    with uncounted():
        _chain(target, decider, proposal, state).make(0, target.start, rng, rng)


def draws_ahead(
    target: Target, decider: AnyDecider, proposal: Proposal[Any], proposal_state: Any
) -> DrawBuffer:
    """Draws of a chain whose proposal and test no longer change."""
    steps_per_draw = decider.settings.steps_per_draw
    chain = _chain(target, decider, proposal, proposal_state)
    record = partial(
        _recorded,
        n_rows=target.n_rows,
        n_kept=target.n_kept,
        steps_per_draw=steps_per_draw,
        scalings=chain.sizes,
        epsilon=decider.epsilon,
    )
    return DrawBuffer(
        chain,
        steps_per_draw=steps_per_draw,
        blocks=target.layout.blocks,
        dtype=target.start.dtype,
        record=record,
        at_once=chain.at_once,
    )


def _chain(
    target: Target, decider: AnyDecider, proposal: Proposal[Any], state: Any
) -> CompiledChain | IndependentChain:
    if is_independent(target, proposal):
        return IndependentChain(target, decider.audits.share)
    if isinstance(proposal, SurrogateHamiltonianProposal):
        return CompiledChain(_compiled(target, decider), trajectories(target, proposal, state))
    assert target.approximation is not None
    proposals = arrays_of(proposal, state, target.approximation, target.start.dtype)
    return CompiledChain(_compiled(target, decider), proposals)


def _compiled(target: Target, decider: AnyDecider) -> CompiledTarget:
    if isinstance(decider, ExactDecider):
        return exact_target(target, decider.state.inflation.value)
    test = decider.state.test
    assert isinstance(test, StudentTTest)
    share = decider.audits.share
    return sequential_target(target, decider.sampling, compiled_test(test), share)


def _recorded(made: Transitions, **about: Any) -> list[dict[str, Any]]:
    return of_transitions(made.statistics, **about)
