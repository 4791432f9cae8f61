"""Interrupt `pm.sample` at random times, as a script: what became of the draws, as JSON.

python -m tests.step_methods.interrupted sequential 25 few
"""

import json
import logging
import os
import random
import subprocess
import sys
import threading
import warnings
from collections import Counter

import numpy as np
import pymc as pm

from pymc_austerity import AusterityMH

DRAWS_BEFORE = 25
MOST_SECONDS = 0.2


def interrupt(pid: int) -> None:
    """Send what Ctrl-C sends, from another process: this one would be between two bytecodes."""
    seconds = random.uniform(0.0, MOST_SECONDS)
    command = f"sleep {seconds:.4f}; kill -INT {pid}"
    subprocess.run(["sh", "-c", command], start_new_session=True, check=False)


def interrupt_each_chain(began: list[threading.Event], *, sequential: bool) -> None:
    for event in began if sequential else began[:1]:
        event.wait()
        interrupt(os.getpid() if sequential else -os.getpid())


def trial(step: AusterityMH, context: str) -> str:
    began = [threading.Event(), threading.Event()]

    def note(trace, draw):
        if draw.draw_idx == DRAWS_BEFORE:
            began[draw.chain].set()

    sequential = context == "sequential"
    interrupter = threading.Thread(
        target=interrupt_each_chain, args=(began,), kwargs={"sequential": sequential}, daemon=True
    )
    interrupter.start()
    where = {"cores": 1} if sequential else {"cores": 2, "mp_ctx": context}
    try:
        idata = pm.sample(
            draws=50_000, tune=10, step=step, chains=2, callback=note, progressbar=False,
            compute_convergence_checks=False, **where,
        )  # fmt: skip
    except BaseException as error:  # noqa: BLE001 - whatever comes out, the draws are lost
        return f"{type(error).__name__}: {error}"[:80]
    n_draws = idata.posterior.sizes["draw"]
    interrupter.join(10)
    return "kept" if 10 <= n_draws < 50_000 else f"{n_draws} draws"


def main(context: str, n_trials: str, rows: str) -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    rng = np.random.default_rng(1)
    n_rows = {"few": 20_000, "all": 2_000}[rows]  # NUTS reads all where there are few
    x = rng.normal(size=(n_rows, 3))
    with pm.Model():
        beta = pm.Normal("beta", 0.0, 3.0, shape=3)
        y = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-x @ [1.0, -1.0, 0.5]))
        pm.Bernoulli("y", logit_p=pm.math.dot(x, beta), observed=y)
        step = AusterityMH(**({"test": "exact"} if rows == "few" else {}))
        outcomes = Counter(trial(step, context) for _ in range(int(n_trials)))
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
