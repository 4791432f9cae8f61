"""Where the time of a draw goes, in runs of ``pm.sample`` with one look a decision."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm

from examples.benchmarks.models import logistic_data, logistic_regression, papers_algorithm
from examples.benchmarks.report import Measurement
from examples.benchmarks.timing import Stopwatch, microseconds
from pymc_austerity import AusterityMH, StudentTTest

TITLE = "one draw, 500 of 100,000 x 20 logistic rows"
BAR = 60.0


@dataclass(frozen=True)
class OwnTest(StudentTTest):
    """A test of a user, which has no compiled counterpart."""


def own_proposal(point: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A proposal of a user."""
    return point + 0.005 * rng.standard_normal(point.size), 0.0


def measure(n_draws: int) -> list[Measurement]:
    """Microseconds of a draw, and of its parts, while the package or the user makes some of them.

    The clock is read at the borders of the parts while ``pm.sample`` runs; reading it costs about
    0.2 microseconds a part, which is included. Tuning is not. The fastest of three runs counts:
    the one that other programs disturbed least.
    """
    with logistic_regression(*logistic_data(100_000)):
        compiled = papers_algorithm(epsilon=0.5)
        rows = microseconds_of_rows(compiled)
        total, time = fastest(compiled, n_draws)
        by_user = {
            "a proposal of the user": papers_algorithm(epsilon=0.5, proposal=own_proposal),
            "a test of the user": papers_algorithm(test=OwnTest(0.5)),
        }
        others = {name: fastest(step, n_draws) for name, step in by_user.items()}
    found = [
        Measurement("PyMC's loop and trace", total - time["step"], "µs"),
        Measurement("a transition", time["step"], "µs"),
        Measurement("its rows alone, gathered in runs", rows, "µs"),
        Measurement("everything but the rows", total - rows, "µs", bar=BAR),
        Measurement("a draw, to its rows", total / rows),
    ]
    for name, (its_total, its_time) in others.items():
        found += [
            Measurement(f"with {name}: everything but the rows", its_total - rows, "µs"),
            Measurement("of which proposals", its_time["proposal"], "µs"),
            Measurement("of which decisions", its_time["decision"] - rows, "µs"),
        ]
    return found


def microseconds_of_rows(step: AusterityMH) -> float:
    """Microseconds to read the rows of a look and to evaluate them."""
    sampling, rng = step.target.sampling, np.random.default_rng(1)
    current, proposed = 0.3 * rng.standard_normal((2, 20))

    def look() -> None:
        for block in sampling.draw.begin(rng).read(sampling.batch_size):
            sampling.function(proposed, current, *block)

    return microseconds(look, [()] * 500)


def fastest(step: AusterityMH, n_draws: int) -> tuple[float, dict[str, float]]:
    """Microseconds of a draw, in all and in the watched parts, in the fastest of three runs."""
    watch = watched(step)
    return min((run(step, watch, n_draws) for _ in range(3)), key=lambda found: found[0])


def run(step: AusterityMH, watch: Stopwatch, n_draws: int) -> tuple[float, dict[str, float]]:
    """Microseconds of a draw, in all and in the watched parts."""
    pm.sample(
        step=step,
        tune=1_000,
        draws=n_draws,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    time = {part: 1e6 * seconds / n_draws for part, seconds in watch.seconds.items()}
    return 1e6 * (watch.last - watch.first) / n_draws, time


def watched(step: AusterityMH) -> Stopwatch:
    """Wrap the parts of a step method; the watch starts when tuning ends."""
    watch = Stopwatch()
    stop_tuning = step.stop_tuning

    def start_watch() -> None:
        stop_tuning()
        watch.reset()

    step.stop_tuning = start_watch
    if step.python_needed:
        step.proposal = TimedProposal(step.proposal, watch)
        step.decider.decide = watch.wrap("decision", step.decider.decide)
    step.step = watch.wrap("step", step.step)
    return watch


class TimedProposal:
    """A proposal with its time taken."""

    def __init__(self, proposal: Any, watch: Stopwatch) -> None:
        self._proposal = proposal
        self.propose = watch.wrap("proposal", proposal.propose)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposal, name)
