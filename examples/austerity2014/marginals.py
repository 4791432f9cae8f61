"""Experiment 1, continued: marginal distributions after some time, against the truth."""

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from examples.austerity2014.experiment import Experiment, PaperFigure, Results, Verdict
from examples.austerity2014.random_walk import exact_run, papers_run
from examples.austerity2014.risk_figure import label
from examples.austerity2014.timed import TimedRun, sample_for
from examples.shared.datasets import load
from examples.shared.digits import Digits, logistic_regression
from pymc_austerity import AusterityMH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "compare"]

PARAMETERS = (1, 2)  # coefficients of the first two components
SHARES = (0.05, 0.25, 1.0)
N_BINS = 30
EPSILON = 0.1
EXACT, SHOWN = label(0.0), label(EPSILON)
N_CHAINS, SECONDS, N_TRUE = 6, 10.0, 20_000
FULL = {"n_chains": N_CHAINS, "seconds": SECONDS, "n_true": N_TRUE}
QUICK = {"n_chains": 2, "seconds": 0.2, "n_true": 300}

Floats = NDArray[np.float64]


def run(*, quick: bool, data: str | None, rng: np.random.Generator) -> Results:
    """Sample from dispersed starts, exactly, with the test and with the defaults."""
    digits = Digits.of(load("mnist_7v9", data))
    return sample(digits, **(QUICK if quick else FULL))


def sample(digits: Digits, *, n_chains: int, seconds: float, n_true: int) -> Results:
    """Distances and histograms; chains are dispersed, since they are told to start at zero."""
    starts = [{"beta": np.zeros(digits.design.shape[1])}] * n_chains
    with logistic_regression(digits.design, digits.labels):
        true = exact_run(digits, n_true)
        runs = {
            label(epsilon): papers_run(digits, epsilon, seconds, starts, seed=seed)
            for seed, epsilon in enumerate((0.0, EPSILON), start=40)
        }
        step = AusterityMH()
        tune = step.default_tune_steps
        runs["defaults"] = sample_for(seconds / 4.0, step, starts, tune=tune, seed=50)
    return {"n_chains": n_chains, "before": runs["defaults"].before, **compare(runs, true)}


def compare(runs: dict[str, TimedRun], true: Floats) -> dict[str, Any]:
    """Distances and histograms of every sampler at three shares of the papers' chains' time.

    Returns
    -------
    dict
        ``seconds``, shape (3,); ``distance`` by sampler, shape (3, chains): Wasserstein distance
        in posterior standard deviations, averaged over two parameters; ``edges`` of the bins by
        parameter; ``truth`` and, by sampler, ``density`` of the first chain.
    """
    papers = [run for name, run in runs.items() if name != "defaults"]
    seconds = min(run.seconds[:, -1].min() for run in papers) * np.array(SHARES)
    edges = [np.linspace(*_range(true[:, p]), N_BINS + 1) for p in PARAMETERS]
    return {
        "seconds": seconds.round(3).tolist(),
        "edges": [edge.tolist() for edge in edges],
        "truth": [_density(true[:, p], e) for p, e in zip(PARAMETERS, edges, strict=True)],
        "distance": {n: [_distances(r, s, true) for s in seconds] for n, r in runs.items()},
        "density": {n: [_densities(r, s, edges) for s in seconds] for n, r in runs.items()},
    }


def _range(values: Floats) -> tuple[float, float]:
    return values.mean() - 4.5 * values.std(), values.mean() + 4.5 * values.std()


def _density(values: Floats, edges: Floats) -> list[float]:
    heights, _ = np.histogram(values, edges)
    return (heights / (values.size * np.diff(edges))).round(4).tolist()


def _until(run: TimedRun, chain: int, seconds: float) -> Floats:
    """Draws of a chain up to some time, at least one."""
    n_draws = max(np.searchsorted(run.seconds[chain], seconds, side="right"), 1)
    return run.draws("beta")[chain, :n_draws]


def _densities(run: TimedRun, seconds: float, edges: list[Floats]) -> list[list[float]]:
    draws = _until(run, 0, seconds)
    return [_density(draws[:, p], e) for p, e in zip(PARAMETERS, edges, strict=True)]


def _distances(run: TimedRun, seconds: float, true: Floats) -> list[float]:
    found = []
    for chain in range(len(run.seconds)):
        draws = _until(run, chain, seconds)
        each = [
            wasserstein_distance(draws[:, p], true[:, p]) / true[:, p].std() for p in PARAMETERS
        ]
        found.append(round(float(np.mean(each)), 4))
    return found


def draw(results: Results) -> "Figure":
    """Histograms of the first chain of the exact and of an approximate sampler, over the truth."""
    found = results
    shape = (len(PARAMETERS), len(SHARES))
    figure, axes = plt.subplots(*shape, figsize=(10, 5), sharex="row", layout="constrained")
    for row, parameter in enumerate(PARAMETERS):
        edges = np.array(found["edges"][row])
        for column, seconds in enumerate(found["seconds"]):
            axis = axes[row, column]
            axis.stairs(found["truth"][row], edges, fill=True, color="0.8", label="truth")
            for name, color in ((EXACT, "#0072B2"), (SHOWN, "#D55E00")):
                heights = found["density"][name][column][row]
                axis.stairs(heights, edges, color=color, linewidth=1.6, label=name)
            axis.set(yticks=[], title=f"{seconds:.3g} s" if row == 0 else "")
        axes[row, 0].set_ylabel(f"coefficient of component {parameter}")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def verdict(results: Results) -> Verdict:
    """Whether the approximate sampler is closer to the truth at all three times."""
    distance = {name: np.mean(each, axis=1) for name, each in results["distance"].items()}
    exact, approximate = distance[EXACT], distance[SHOWN]
    closer = int(np.sum(approximate < exact))
    times = ", ".join(f"{s:.3g}" for s in results["seconds"])
    ours = (
        f"Closer at {closer} of the 3 times. Distances from the truth after {times} seconds, in "
        f"posterior standard deviations (mean of {results['n_chains']} chains and two parameters): "
        f"{_list(exact)} for the exact sampler, {_list(approximate)} with {SHOWN}, "
        f"{_list(distance['defaults'])} with the defaults after {results['before']:.1f} seconds of "
        "set-up and tuning."
    )
    return Verdict(closer == len(exact), ours)


def _list(values: Floats) -> str:
    return ", ".join(f"{value:.2g}" for value in values)


EXPERIMENT = Experiment(
    name="marginals",
    title="Random walk: marginal distributions after some time",
    setting=(
        "Posterior and random walk as before. Chains start as `pm.sample` starts them with this "
        "step method: uniformly within (-1, 1) in every coefficient, and for the defaults at draws "
        "of a normal approximation with twice its spread. Nothing is discarded. Distances are "
        f"Wasserstein distances of all draws of a chain up to some time; {N_CHAINS} chains of "
        f"{SECONDS:g} seconds of processor time (a quarter of that for the defaults); the picture "
        "shows the first one."
    ),
    run=run,
    figures=(
        PaperFigure(
            name="marginals",
            figure="arXiv figure 4",
            claim=(
                "At the same time the marginals of the approximate sampler are closer to the "
                "truth than those of the exact one."
            ),
            draw=draw,
            verdict=verdict,
        ),
    ),
)
