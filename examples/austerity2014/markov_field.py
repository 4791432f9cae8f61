"""Experiment 6: Gibbs sampling of a Markov random field with a potential for each triple."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from examples.austerity2014 import field_figure
from examples.austerity2014.budgets import Budget, epsilon_of, label
from examples.austerity2014.experiment import Experiment, PaperFigure, Results
from examples.austerity2014.papers_chains import papers_chains
from examples.austerity2014.parts import Parts
from examples.austerity2014.risk_figure import DEFAULTS
from examples.austerity2014.timed import TimedRun
from examples.austerity2014.triple_field import TripleField, log_odds
from pymc_austerity import AusterityGibbs
from pymc_austerity.paper.gibbs_sweep import SweepPlan

SPREAD, BATCH_SIZE = 0.02, 500
BUDGET = Budget(
    1_000.0,
    {
        label(0.0): 2_897,
        label(0.01): 3_429,
        label(0.05): 3_979,
        label(0.1): 4_494,
        label(0.15): 4_889,
        label(0.2): 5_507,
        label(0.25): 5_959,
    },
)
SUBSET_SIZE = 5
N_VARIABLES, N_CHAINS, RATIO, N_SUBSETS, N_TRUE = 100, 8, 1.0, 1_600, 300_000
FULL: dict[str, Any] = {
    "n_variables": N_VARIABLES,
    "batch_size": BATCH_SIZE,
    "n_chains": N_CHAINS,
    "ratio": RATIO,
    "n_true": N_TRUE,
    "n_conditionals": 60,
    "n_repeats": 2_000,
    "n_subsets": N_SUBSETS,
    "compile_kwargs": {},
}
QUICK: dict[str, Any] = {
    "n_variables": 20,
    "batch_size": 50,
    "n_chains": 2,
    "ratio": 5e-3,
    "n_true": 2_000,
    "n_conditionals": 5,
    "n_repeats": 40,
    "n_subsets": 20,
    "compile_kwargs": {"mode": "FAST_COMPILE"},
}

Floats = NDArray[np.float64]


def run(*, quick: bool, data: str | None, parts: Parts) -> Results:
    """Sample with every epsilon and with the defaults; compare with long exact chains."""
    return compare(parts, **(QUICK if quick else FULL))


def compare(
    parts: Parts,
    *,
    n_variables: int,
    batch_size: int,
    n_chains: int,
    ratio: float,
    n_true: int,
    n_conditionals: int,
    n_repeats: int,
    n_subsets: int,
    compile_kwargs: dict[str, Any],
) -> Results:
    """Conditional probabilities, errors of marginals and factors read, for every sampler."""
    field = TripleField.draw(n_variables, SPREAD, parts.rng("field"))
    true = field.sample(n_true, parts.rng("truth"))
    rng = parts.rng("subsets")
    subsets = np.array(
        [rng.choice(n_variables, SUBSET_SIZE, replace=False) for _ in range(n_subsets)]
    )
    halves = [marginals(half, subsets) for half in np.array_split(true, 2)]
    states = true[rng.choice(n_true, n_conditionals)].astype(np.int64)
    starts = [{"x": rng.integers(0, 2, size=n_variables)} for _ in range(n_chains)]
    common = {"likelihood": ["potentials"], "compile_kwargs": compile_kwargs}
    usual = {"batch_size": batch_size, "audit": 0.0, **common}
    samplers = {
        name: partial(AusterityGibbs, epsilon=epsilon_of(name), **usual) for name in BUDGET.steps
    }
    samplers[DEFAULTS] = partial(AusterityGibbs, **common)
    steps = BUDGET.steps_at(ratio)
    with field.model():
        decisions = {
            name: parts(
                f"{name}, decisions",
                partial(describe_decisions, make, states, n_repeats, parts.rng(name)),
            )
            for name, make in samplers.items()
        }
        chains = papers_chains(
            parts,
            samplers,
            starts,
            steps | {DEFAULTS: steps[label(0.05)]},
            partial(l1_curve, subsets, np.mean(halves, axis=0)),
        )
    return {
        "budget": BUDGET.record(ratio),
        "n_factors": len(field.table),
        "truth_error": 0.5 * float(np.abs(halves[0] - halves[1]).sum(axis=1).mean()),
        "exact_probability": exact_probabilities(field, states),
        "n_repeats": n_repeats,
        "decisions": decisions,
        "l1": chains,
    }


def describe_decisions(
    make: Callable[[], AusterityGibbs],
    states: NDArray[np.int64],
    n_repeats: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Empirical conditional probabilities, share of the factors read and of wrong decisions."""
    step = make()
    share, wrong = audited(step, states, rng)
    empirical = empirical_probabilities(step, states, n_repeats, rng)
    return {"empirical": empirical, "share": share, "wrong": wrong}


# ------------------------------------------------------------------ conditional probabilities


def exact_probabilities(field: TripleField, states: NDArray[np.int64]) -> list[float]:
    """P(X_j = 1 | others) of one variable of each state, j counting up with the states."""
    coefficients = field.coefficients()
    variables = np.arange(len(states)) % field.n_variables
    found = [log_odds(s, *coefficients, j) for s, j in zip(states, variables, strict=True)]
    return expit(found).tolist()


def plan_of(
    step: AusterityGibbs, entries: NDArray, rng: np.random.Generator, audit: bool
) -> SweepPlan:
    """Updates of some variables, with random numbers of their own."""
    uniform = rng.random(entries.size)
    windows = (rng.random(entries.size) * step.factors.sizes[entries]).astype(np.int64)
    return SweepPlan(
        entries, np.log(uniform / (1 - uniform)), windows, np.full(entries.size, audit)
    )


def empirical_probabilities(
    step: AusterityGibbs, states: NDArray[np.int64], n_repeats: int, rng: np.random.Generator
) -> list[float]:
    """How often updates of one and the same variable make it one, the others being held."""
    found = []
    for number, state in enumerate(states):
        variable = number % state.size
        plan = plan_of(step, np.full(n_repeats, variable), rng, audit=False)
        flips = step.sweep(state.copy(), plan).flipped
        found.append(float(((state[variable] + np.cumsum(flips)) % 2).mean()))
    return found


def audited(
    step: AusterityGibbs, states: NDArray[np.int64], rng: np.random.Generator
) -> tuple[float, float]:
    """Share of the factors read and of wrong decisions, over a sweep from every state."""
    used, wrong = [], []
    for state in states:
        plan = plan_of(step, np.arange(state.size), rng, audit=True)
        outcomes = step.sweep(state.copy(), plan)
        used.append(outcomes.n_rows_used / step.factors.sizes)
        wrong.append(outcomes.flipped != outcomes.exact_flip)
    return float(np.mean(used)), float(np.mean(wrong))


# ------------------------------------------------------------------ marginals of five variables


def marginals(draws: NDArray, subsets: NDArray) -> Floats:
    """Shares of the 32 states of each subset, shape (subsets, 32)."""
    weights = 1 << np.arange(subsets.shape[1])
    counts = [
        np.bincount(draws[:, subset] @ weights, minlength=2 ** subsets.shape[1])
        for subset in subsets
    ]
    return np.array(counts) / len(draws)


def l1_curve(subsets: NDArray, truth: Floats, run: TimedRun) -> dict[str, Any]:
    """L1 error of the marginals of a chain after so many sweeps, averaged over the subsets."""
    draws = run.draws("x")[0]
    n_draws = len(draws)
    counts = np.unique(np.geomspace(min(10, n_draws), n_draws, 25).astype(int))
    total, before, errors = np.zeros_like(truth), 0, []
    for count in counts:
        total += (count - before) * marginals(draws[before:count], subsets)
        before = int(count)
        errors.append(round(float(np.abs(total / count - truth).sum(axis=1).mean()), 5))
    return {
        "before": round(run.before, 2),
        "sweeps": counts.tolist(),
        "seconds": run.seconds[0, counts - 1].round(4).tolist(),
        "error": errors,
    }


EXPERIMENT = Experiment(
    name="markov_field",
    title="Gibbs sampling of a Markov random field",
    setting=(
        f"- Model: {N_VARIABLES} binary variables and a potential for each of the 161,700 triples, "
        f"with normal log-potentials of standard deviation {SPREAD}.\n"
        "- Sampler: an exact update of a variable evaluates 4,851 potentials; the test evaluates "
        f"{BATCH_SIZE} per look.\n"
        f"- Chains: {N_CHAINS}, which start with every variable 0 or 1 with equal probability. The "
        f"number of sweeps, divided by the paper's, is {RATIO:g}.\n"
        f"- Error: L1 distance between sampled and true joint distribution of {SUBSET_SIZE} "
        f"variables, averaged over {N_SUBSETS:,} random subsets and the chains.\n"
        f"- True values: from {N_TRUE:,} sweeps of exact Gibbs sampling on the sum of the "
        "log-potentials, written as a polynomial. This is fast, but it works for triples only.\n"
        "- Defaults: `AusterityGibbs()` (epsilon = 0.05, 200 potentials per look), with as many "
        "sweeps as the chains with epsilon = 0.05."
    ),
    run=run,
    figures=(
        PaperFigure(
            name="markov_field_conditionals",
            figure="arXiv figure 7",
            claim=(
                "The approximate update overestimates small conditional probabilities and "
                "underestimates large ones; the error is small where epsilon is small."
            ),
            draw=field_figure.draw_conditionals,
            beside=field_figure.draw_default_conditionals,
            verdict=field_figure.verdict_on_conditionals,
        ),
        PaperFigure(
            name="markov_field_errors",
            figure="arXiv figure 8",
            claim=(
                "With epsilon > 0, the error falls faster at first and then levels off at the "
                "bias, so that exact sampling overtakes it."
            ),
            draw=field_figure.draw_errors,
            beside=field_figure.draw_default_errors,
            verdict=field_figure.verdict_on_errors,
        ),
    ),
)
