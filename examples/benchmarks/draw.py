"""Where the time of a draw goes, in one run of ``pm.sample`` with one look a decision."""

from dataclasses import replace
from typing import Any

import pymc as pm

from examples.benchmarks.models import logistic_data, logistic_regression, papers_algorithm
from examples.benchmarks.report import Measurement
from examples.benchmarks.timing import Stopwatch
from pymc_austerity import AusterityMH

TITLE = "one draw, 500 of 100,000 x 20 logistic rows"
BAR = 60.0


class TimedProposal:
    """A proposal with its time taken."""

    def __init__(self, proposal: Any, watch: Stopwatch) -> None:
        self._proposal = proposal
        self.propose = watch.wrap("proposal", proposal.propose)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposal, name)


def measure(n_draws: int) -> list[Measurement]:
    """Microseconds in the parts of a draw.

    The clock is read at the borders of the parts while ``pm.sample`` runs; reading it costs about
    0.2 microseconds a part, which is included. Tuning is not. The fastest of three runs counts:
    the one that other programs disturbed least.
    """
    with logistic_regression(*logistic_data(100_000)):
        step = papers_algorithm(epsilon=0.5)
        watch = watched(step)
        runs = [run(step, watch, n_draws) for _ in range(3)]
    return parts(*min(runs, key=lambda run: run[0]))


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
    step.proposal = TimedProposal(step.proposal, watch)
    target = step.target
    rows = watch.wrap("compiled rows", target.sampling.function)
    step.decider.target = replace(
        target,
        row_free_difference=watch.wrap("row-free part", target.row_free_difference),
        sampling=replace(target.sampling, function=rows),
    )
    step.decider.decide = watch.wrap("decision", step.decider.decide)
    step._transition = watch.wrap("transition", step._transition)
    step.step = watch.wrap("step", step.step)
    return watch


def parts(total: float, time: dict[str, float]) -> list[Measurement]:
    """Disjoint parts of a draw."""
    disjoint = {
        "PyMC's loop and trace": total - time["step"],
        "PyMC's step: raveling the point": time["step"] - time["transition"],
        "proposal": time["proposal"],
        "row-free part of the log-density": time["row-free part"],
        "test": time["decision"] - time["row-free part"] - time["compiled rows"],
        "statistics of the draw": time["transition"] - time["proposal"] - time["decision"],
    }
    rows = time["compiled rows"]
    return [
        *(Measurement(part, value, "µs") for part, value in disjoint.items()),
        Measurement("everything but the compiled rows", total - rows, "µs", bar=BAR),
        Measurement("compiled rows", rows, "µs"),
        Measurement("a draw, to its compiled rows", total / rows),
    ]
