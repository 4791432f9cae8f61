"""What PyMC's NUTS takes, from its first transitions."""

import time

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS
from pymc_austerity.step_methods.expected_time import SETUP_SECONDS, TRANSITIONS, CostOfNUTS
from pymc_austerity.step_methods.interrupts import restore_interrupts

_SEED = 20_140_622
_USUAL, _ALL, _LAST = 100, 200, 50
"""Transitions that show that NUTS is fast; that it makes otherwise, the last of them with a metric
that is learnt; and of which the time is taken."""
_UNADAPTED = 4.0
"""Times as long as a transition takes with the first metric."""
_MOST_SECONDS = 3.0


def measured_cost(step: AllRowsNUTS, point: dict[str, NDArray], started: float) -> CostOfNUTS:
    """Let NUTS begin to tune, and measure its transitions once they have their usual length.

    Parameters
    ----------
    step : AllRowsNUTS
        It begins anew when ``pm.sample`` runs.
    point : dict
        The model's initial point.
    started : float
        When its compilation began, by the performance counter.
    """
    step.setup_chain(np.random.default_rng(_SEED), _ALL, 0)
    times: list[float] = []
    try:
        current, _ = step.step(dict(point))  # which compiles the rest
        compilation = time.perf_counter() - started
        while sum(times) < _MOST_SECONDS and len(times) < _ALL:
            began = time.process_time()
            current, _ = step.step(current)
            times.append(time.process_time() - began)
            if len(times) == _USUAL and _usual(times) < SETUP_SECONDS / TRANSITIONS:
                break
    finally:  # as if no chain had begun
        step.reset_tuning()
        restore_interrupts()
    seconds = _usual(times) / (1.0 if len(times) >= _USUAL else _UNADAPTED)
    return CostOfNUTS(seconds, compilation, is_measured=True)


def _usual(times: list[float]) -> float:
    return float(np.mean(times[-_LAST:]))
