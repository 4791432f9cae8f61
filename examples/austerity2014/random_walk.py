"""Experiment 1: a random walk on a logistic regression of the digits 7 and 9."""

from functools import partial
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.special import expit

from examples.austerity2014 import marginals, risk, risk_figure
from examples.austerity2014.budgets import Budget, epsilon_of, label
from examples.austerity2014.experiment import Experiment, PaperFigure, Results
from examples.austerity2014.papers_chains import defaults_chains, papers_chains, seconds_of
from examples.austerity2014.parts import Parts
from examples.austerity2014.timed import TimedRun
from examples.shared.datasets import load
from examples.shared.digits import Digits, logistic_regression, papers_walk, posterior_mode
from pymc_austerity import AusterityMH
from pymc_austerity.proposals import CrankNicolsonProposal
from pymc_austerity.proposals.protocols import GaussianApproximation

BUDGET = Budget(
    400.0,
    {
        label(0.0): 75_484,
        label(0.01): 133_069,
        label(0.05): 200_672,
        label(0.1): 257_897,
        label(0.2): 422_978,
    },
)
STEPS_PER_DRAW = 10
N_CHAINS, RATIO, N_TRUE = 3, 0.1, 10_000
FULL: dict[str, Any] = {"n_chains": N_CHAINS, "ratio": RATIO, "n_true": N_TRUE}
QUICK: dict[str, Any] = {"n_chains": 2, "ratio": 1e-3, "n_true": 300}

Floats = NDArray[np.float64]


def run(*, quick: bool, data: str | None, parts: Parts) -> Results:
    """Sample with every epsilon and with the defaults; compare with a long exact run."""
    return compare(Digits.of(load("mnist_7v9", data)), parts, **(QUICK if quick else FULL))


def compare(digits: Digits, parts: Parts, *, n_chains: int, ratio: float, n_true: int) -> Results:
    """Risk curves and marginals of every sampler."""
    mode, _ = posterior_mode(digits.design, digits.labels)
    with logistic_regression(digits.design, digits.labels):
        truth = parts("truth", lambda: facts(digits, exact_run(digits, n_true)))
        about = partial(describe, digits, truth)
        chains = papers_chains(
            parts,
            {name: partial(papers_step, digits, name, mode) for name in BUDGET.steps},
            [{"beta": np.zeros(mode.size)}] * n_chains,
            BUDGET.steps_at(ratio),
            about,
        )
        seconds = max(map(seconds_of, chains.values())) / 2
        chains["defaults"] = defaults_chains(parts, AusterityMH, seconds, n_chains, about)
    budget = BUDGET.record(ratio)
    return {
        "budget": budget,
        "truth_error": truth["truth_error"],
        "risk": {n: risk.together([c["risk"] for c in each]) for n, each in chains.items()},
        "marginals": marginals.together(chains, truth["marginals"], budget),
        "spread": {n: float(np.mean([c["spread"] for c in each])) for n, each in chains.items()},
    }


def papers_step(digits: Digits, name: str, mode: Floats) -> AusterityMH:
    """The paper's algorithm; one draw in ten steps is kept, since neighbors hardly differ.

    Chains that start where the step method begins are dispersed. It begins at the mode, so that
    those which start at zero stay there.
    """
    return papers_walk(
        digits.design.shape[1],
        epsilon_of(name),
        steps_per_draw=STEPS_PER_DRAW,
        audit=0.0,
        initial_point={"beta": mode},
    )


def predictions(digits: Digits, beta: Floats) -> Floats:
    """Probabilities of the test images."""
    values: Floats = expit(beta @ digits.test_design.T)
    return values


def facts(digits: Digits, true: Floats) -> dict[str, Any]:
    """What the truth is, and how well it is known."""
    batches = [predictions(digits, part).mean(axis=0) for part in np.array_split(true, 20)]
    return {
        "predictions": np.mean(batches, axis=0).tolist(),
        "truth_error": float(np.var(batches, axis=0, ddof=1).mean() / len(batches)),
        "sd": true.std(axis=0).tolist(),
        "marginals": marginals.facts(true),
    }


def describe(digits: Digits, truth: dict[str, Any], run: TimedRun) -> dict[str, Any]:
    """Risk and marginals of a chain, and the spread of its second half over the true one."""
    draws = run.draws("beta")[0]
    return {
        "risk": risk.curve(
            run, "beta", partial(predictions, digits), np.array(truth["predictions"])
        ),
        "marginals": marginals.describe(run, truth["marginals"]),
        "spread": float(np.mean(draws[len(draws) // 2 :].std(axis=0) / truth["sd"])),
    }


def exact_run(digits: Digits, n_draws: int) -> Floats:
    """Draws of exact Metropolis-Hastings with moves about the normal approximation."""
    mode, information = posterior_mode(digits.design, digits.labels)
    about = GaussianApproximation(mode, np.linalg.cholesky(np.linalg.inv(information)))

    def moves(point: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
        new, log_ratio, _ = CrankNicolsonProposal(rng.choice([1.0, 0.3])).propose(about, point, rng)
        return new, log_ratio

    burn_in = n_draws // 20
    idata = pm.sample(
        step=AusterityMH(epsilon=0.0, proposal=moves),
        initvals={"beta": mode},
        tune=0,
        draws=n_draws + burn_in,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    draws: Floats = idata.posterior["beta"].to_numpy()[0, burn_in:]
    return draws


EXPERIMENT = Experiment(
    name="random_walk",
    title="Random walk, logistic regression, MNIST 7 v 9",
    setting=(
        "- Data: 12,214 training and 2,037 test images, reduced to 50 principal components, and an "
        "intercept. The intercept and the scale of the components are our choice.\n"
        "- Model: logistic regression, normal prior with precision 10.\n"
        "- Sampler: random walk with standard deviation 0.01; the test reads 500 rows per look. "
        f"Every {STEPS_PER_DRAW}th state is kept.\n"
        f"- Chains: {N_CHAINS}, which start with all coefficients at zero and make {RATIO:g} times "
        "as many steps as the papers' chains.\n"
        "- Risk: squared error of the predictive probability averaged over all draws so far; mean "
        "over test images and chains.\n"
        f"- True values: from an exact chain of {N_TRUE:,} draws that reads all rows at every step "
        "and proposes from a normal approximation. The papers use Hybrid Monte Carlo.\n"
        "- Defaults: `AusterityMH()`, with its own starting point and tuning, in half the time of "
        "the slowest of the other samplers.\n"
        "- Marginals (arXiv figure 4): from the same chains, from all draws so far. Distances are "
        "Wasserstein distances. The pictures show the first chain."
    ),
    run=run,
    figures=(
        PaperFigure(
            name="random_walk_risk",
            figure="ICML figure 2",
            claim=(
                "For any practical length of the chains, variance dominates the risk, and some "
                "epsilon > 0 has the lowest risk."
            ),
            draw=risk_figure.draw,
            beside=risk_figure.draw_defaults,
            verdict=risk_figure.verdict,
        ),
        PaperFigure(
            name="marginals",
            figure="arXiv figure 4",
            claim=(
                "After the same time, the marginals of the approximate sampler are closer to the "
                "truth than those of the exact sampler."
            ),
            draw=marginals.draw,
            beside=marginals.draw_defaults,
            verdict=marginals.verdict,
        ),
    ),
    remarks=(
        "- At first the transient from zero to the posterior dominates the risk. Cheap steps "
        "shorten it, because more of them are made in the same time.\n"
        "- Later, cheaper steps lose part of this advantage. The decisions of a random walk at the "
        "scale of the posterior are close, so with a large epsilon many of them are wrong. Wrong "
        "decisions in both directions make the sampled posterior too wide.\n"
        "- The control variates of the defaults remove the cause: a few rows are enough for a "
        "decision, and few decisions are wrong."
    ),
)
