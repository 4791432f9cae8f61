"""Cells that are no samplers: the time of a gradient on all rows, and audited decisions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from examples.benchmarks.peers.problems import Problem
from examples.benchmarks.peers.pymc_samplers import sample
from examples.benchmarks.peers.reference import reference
from examples.benchmarks.peers.run import now
from pymc_austerity import AusterityMH

N_AUDITED = 500


def gradient(problem: Problem, amount: float) -> dict[str, Any]:
    """Processor time of a gradient on all rows, the least of some."""
    model = problem.model(problem.rows)
    function = model.compile_dlogp(mode="NUMBA")
    point = model.initial_point()
    function(point)
    times = []
    for _ in range(15):
        started = now()
        function(point)
        times.append(now() - started)
    return {"gradient_seconds": float(np.min(times))}


def audit(problem: Problem, epsilon: float) -> dict[str, Any]:
    """Decisions after tuning, each checked on all rows."""

    def make_step() -> tuple[Any, None]:
        step = AusterityMH(epsilon=epsilon, audit=1.0)
        audits, stop_tuning = step.decider.audits, step.stop_tuning
        audits.share = 0.0

        def begin_audit() -> None:
            stop_tuning()
            audits.share = 1.0

        step.stop_tuning = begin_audit
        return step, None

    run, statistics = sample(problem, make_step, N_AUDITED, seconds=600.0)
    audited = statistics["audited"].to_numpy()
    return {
        "epsilon": epsilon,
        "n_audited": int(audited.sum()),
        "n_wrong": int((audited & ~statistics["audit_agrees"].to_numpy()).sum()),
        "rows_per_decision": float(statistics["n_rows_used"].mean()),
        "setup_seconds": run.setup_seconds,
        "acceptance": float(statistics["accepted"].mean()),
    }


EXTRA: dict[str, Callable[[Problem, float], dict[str, Any]]] = {
    "reference": lambda problem, amount: reference(problem, n_points=int(amount)),
    "gradient": gradient,
    "audit-0.05": lambda problem, _: audit(problem, 0.05),
    "audit-0.01": lambda problem, _: audit(problem, 0.01),
}
"""Names of the cells, and what measures them; the second argument is points, where it counts."""
