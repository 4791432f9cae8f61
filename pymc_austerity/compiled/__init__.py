"""Transitions of a chain in compiled code: from random numbers to decisions, without Python.

One function for all models, which is compiled once on a machine; what belongs to a model is known
to it by addresses. It does what the Python classes of `pymc_austerity.proposals`,
`pymc_austerity.deciding` and `pymc_austerity.sequential` do, with the same random numbers.
"""

from pymc_austerity.compiled.addresses import (
    MOST_APART,
    CommonByAddress,
    RowsByAddress,
    address_of_tail,
    addressed,
    call,
    call_for_number,
    evaluate_rows,
    evaluator,
    table_of,
)
from pymc_austerity.compiled.decisions import (
    STATISTICS,
    AnyDecisions,
    CompiledBarkerTest,
    CompiledTest,
    ExactDecisions,
    RandomDecisions,
    SequentialDecisions,
    compiled_test,
    new_decisions,
    refusal_of_test,
)
from pymc_austerity.compiled.owners import (
    FEWEST_ROWS,
    Owners,
    SequentialSettings,
    Verdicts,
    decide_each,
)
from pymc_austerity.compiled.proposals import (
    CompiledPosterior,
    NormalMoves,
    arrays_of,
    refusal_of,
)
from pymc_austerity.compiled.surveys import (
    CompiledSurvey,
    UniformCompiledSurvey,
    new_survey,
    new_uniform_survey,
)
from pymc_austerity.compiled.transitions import (
    CompiledChain,
    CompiledTarget,
    CompiledTrajectories,
    KnownByAddress,
    Transitions,
    center_and_scale,
    walk,
)
