"""Experiment 5: Langevin dynamics on half a million connections, with two step sizes."""

from functools import partial
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.special import expit

from examples.austerity2014 import intrusions_figure
from examples.austerity2014.budgets import Budget, epsilon_of, label
from examples.austerity2014.experiment import Experiment, PaperFigure, Results
from examples.austerity2014.papers_chains import defaults_chains, papers_chains
from examples.austerity2014.parts import Parts
from examples.austerity2014.timed import TimedRun
from examples.shared.datasets import Arrays, load
from examples.shared.digits import logistic_regression, posterior_mode
from pymc_austerity import AusterityMH, LangevinProposal

BATCH_SIZE, STEPS_PER_DRAW = 500, 10
UNCORRECTED = "uncorrected"
BUDGET = Budget(
    1.0,
    {
        UNCORRECTED: 671_400,
        label(0.1): 118_360,
        label(0.05): 53_480,
        label(0.01): 28_560,
        label(0.0): 2_600,
    },
)
RATIOS = {5e-4: 1.0, 1e-4: 0.1}
DEFAULTS_SHARE = 0.5
N_CHAINS, N_TRUE = 2, 20_000
FULL: dict[str, Any] = {"n_chains": N_CHAINS, "ratios": RATIOS, "n_true": N_TRUE}
QUICK: dict[str, Any] = {"n_chains": 2, "ratios": {5e-4: 1e-3, 1e-4: 1e-3}, "n_true": 200}
N_BINS, N_TIMES = 40, 15

Floats = NDArray[np.float64]


def connections(data: Arrays) -> tuple[Floats, NDArray]:
    """Design matrix, shape (n, d), and labels: 1 for an attack, 0 for a normal connection.

    Numerical features as log(1 + x), then symbolic ones by number; standardized. What is constant
    is 0, and its coefficient has no other distribution than the prior.
    """
    x = np.column_stack([np.log1p(data["X_num"].astype(np.float64)), data["X_cat"]])
    varies = np.ptp(x, axis=0) > 0.0
    normal = list(data["label_names"]).index("normal")
    attack = (data["label"] != normal).astype(np.int8)
    design = np.zeros(x.shape)
    design[:, varies] = (x - x.mean(axis=0))[:, varies] / x[:, varies].std(axis=0)
    return design, attack


def run(*, quick: bool, data: str | None, parts: Parts) -> Results:
    """Sample without correction, exactly, with the test, and with the defaults."""
    design, attack = connections(load("kddcup99_10pct", data))
    return compare(design, attack, parts, **(QUICK if quick else FULL))


def compare(
    design: Floats,
    attack: NDArray,
    parts: Parts,
    *,
    n_chains: int,
    ratios: dict[float, float],
    n_true: int,
) -> Results:
    """Errors of the variances by step size and sampler."""
    mode, information = posterior_mode(design, attack)
    covariance = np.linalg.inv(information)
    with logistic_regression(design, attack):
        truth = parts("truth", lambda: facts(true_draws(n_true)))
        about = partial(describe, truth)
        samplers = {
            size: papers_chains(
                parts,
                {name: partial(papers_step, covariance, size, name) for name in BUDGET.steps},
                [{"beta": mode}] * n_chains,
                BUDGET.steps_at(ratio),
                about,
                title=f"step size {size:g}, ",
            )
            for size, ratio in ratios.items()
        }
        exact = samplers[max(ratios)][label(0.0)]
        seconds = DEFAULTS_SHARE * np.mean([chain["seconds"][-1] for chain in exact])
        defaults = defaults_chains(parts, AusterityMH, seconds, n_chains, about)
    noise, concentration = row_noise(design, attack, mode)
    return {
        "papers_steps": dict(BUDGET.steps),
        "ratios": {f"{size:g}": ratio for size, ratio in ratios.items()},
        "truth": truth,
        "concentration": concentration,
        "in_theory": {
            f"{size:g}": float(np.mean(widening(noise, covariance, size, len(attack)) - 1.0))
            for size in ratios
        },
        "samplers": {f"{size:g}": found for size, found in samplers.items()},
        "defaults": defaults,
    }


def true_draws(n_draws: int) -> Floats:
    """Draws of the posterior, shape (n_draws, d)."""
    step = AusterityMH()
    idata = pm.sample(
        step=step,
        tune=step.default_tune_steps,
        draws=n_draws,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    draws: Floats = idata.posterior["beta"].to_numpy()[0]
    return draws


def facts(true: Floats) -> dict[str, Any]:
    """Variances, how well they are known, and the marginal that is shown."""
    first, second = np.array_split(true, 2)
    skewness = np.mean((true - true.mean(axis=0)) ** 3, axis=0) / true.std(axis=0) ** 3
    shown = int(np.argmax(np.abs(skewness)))
    values = true[:, shown]
    reach = 4.5 * values.std()
    edges = np.linspace(values.mean() - reach, values.mean() + reach, N_BINS + 1)
    return {
        "variances": true.var(axis=0).tolist(),
        "error": float(0.5 * np.mean(np.abs(first.var(axis=0) / second.var(axis=0) - 1.0))),
        "shown": shown,
        "edges": edges.tolist(),
        "density": histogram(values, edges),
    }


def papers_step(covariance: Floats, size: float, name: str) -> AusterityMH:
    """Gradients of mini-batches as they are, without control variates; nothing is tuned."""
    decided: dict[str, Any] = {"test": None}
    if name != UNCORRECTED:
        decided = {"epsilon": epsilon_of(name)}
    return AusterityMH(
        batch_size=BATCH_SIZE,
        control_variates=None,
        sampling="windows",
        proposal=LangevinProposal(size, BATCH_SIZE, preconditioner=covariance),
        tune=False,
        audit=0.0,
        steps_per_draw=STEPS_PER_DRAW,
        **decided,
    )


def histogram(values: Floats, bins: Floats) -> list[float]:
    """Density in every bin."""
    heights, _ = np.histogram(values, bins)
    return (heights / (values.size * np.diff(bins))).round(4).tolist()


def errors(draws: Floats, true: Floats) -> tuple[float, float]:
    """L1 errors of the variances of draws, shape (n, d), from the true ones, shape (d,).

    First the mean of errors relative to each true variance, then their sum over the sum of the true
    variances, to which coefficients of little influence contribute most.
    """
    off = np.abs(draws.var(axis=0) - true)
    return float(np.mean(off / true)), float(off.sum() / true.sum())


def describe(truth: dict[str, Any], run: TimedRun) -> dict[str, Any]:
    """Errors of the variances of all draws up to some steps, acceptance, and a marginal."""
    draws, n_draws = run.draws("beta")[0], run.seconds.shape[1]
    true = np.array(truth["variances"])
    counts = np.unique(np.geomspace(2, n_draws, N_TIMES).astype(int))
    found = [errors(draws[:n], true) for n in counts]
    half = draws[n_draws // 2 :]
    return {
        "before": round(run.before, 2),
        "steps": (counts * run.steps_per_draw).tolist(),
        "seconds": run.seconds[0, counts - 1].round(4).tolist(),
        "relative": [round(relative, 4) for relative, _ in found],
        "absolute": [round(absolute, 4) for _, absolute in found],
        "median_ratio": float(np.median(half.var(axis=0) / true)),
        "acceptance": float(run.idata.sample_stats["accepted"].mean()),
        "density": histogram(draws[:, truth["shown"]], np.array(truth["edges"])),
    }


def row_noise(design: Floats, labels: NDArray, mode: Floats) -> tuple[Floats, float]:
    """Sum of the products of the rows' gradients, (d, d), and what ten rows hold of its trace.

    The trace is taken in units of the posterior.
    """
    gradients = design * (labels - expit(design @ mode))[:, None]
    _, information = posterior_mode(design, labels)
    scaled = np.linalg.solve(np.linalg.cholesky(information), gradients.T)
    each = np.sort((scaled**2).sum(axis=0))
    return gradients.T @ gradients, float(each[-10:].sum() / each.sum())


def widening(noise: Floats, covariance: Floats, size: float, n_rows: int) -> Floats:
    r"""Variances of uncorrected draws over the true ones, for a normal posterior, shape (d,).

    With the covariance S as preconditioner a step is :math:`(1 - h/2) x + (h/2) S e + \sqrt h
    S^{1/2} z`, where the error e of the gradient has the covariance (N/n - 1) times that of the
    rows. The stationary covariance is :math:`(S + (h/4) S \, Cov(e) \, S) / (1 - h/4)`.
    """
    error = (n_rows / BATCH_SIZE - 1.0) * noise
    wide = (covariance + 0.25 * size * covariance @ error @ covariance) / (1.0 - 0.25 * size)
    return np.diag(wide) / np.diag(covariance)


EXPERIMENT = Experiment(
    name="sgld_intrusions",
    title="Langevin dynamics on KDD Cup 99",
    setting=(
        "- Data: 494,021 connections (the 10 % set), each an attack or not. All 41 features are "
        "used and standardized: 38 numerical ones as logarithms and 3 symbolic ones as numbers. "
        "The features are our choice.\n"
        "- Model: logistic regression, normal prior with precision 10.\n"
        f"- Sampler: Langevin proposals with gradients from {BATCH_SIZE} rows; the test reads "
        f"{BATCH_SIZE} rows per look. All samplers use the covariance at the mode as "
        "preconditioner: without one, the steps are unstable or nearly all proposals are rejected. "
        "Step sizes 5e-4 and 1e-4 are in units of this covariance. The preconditioner and the "
        "number of rows per gradient are our choice.\n"
        f"- Chains: {N_CHAINS} per sampler, which start at the mode, with a sample variance of 0. "
        "The number of steps, divided by the paper's, is "
        f"{RATIOS[5e-4]:g} (step size 5e-4) or {RATIOS[1e-4]:g} (step size 1e-4).\n"
        "- Error: absolute error of the variance of all draws so far, relative to the true "
        "variance of each coefficient; mean over coefficients and chains. For the *error of sums*, "
        "absolute errors and true variances are first summed over the coefficients.\n"
        f"- True values: from a chain of {N_TRUE:,} draws of `AusterityMH()`.\n"
        f"- Defaults: `AusterityMH()`, in {DEFAULTS_SHARE:g} times the time of the exact chain."
    ),
    run=run,
    figures=(
        PaperFigure(
            name="sgld_intrusions",
            figure="arXiv figures 5 and 6",
            claim=(
                "With a large step size, uncorrected dynamics are fast but converge to a wrong "
                "distribution. A Metropolis-Hastings test corrects this, and the sequential test "
                "needs less time for it than exact decisions."
            ),
            draw=intrusions_figure.draw,
            beside=intrusions_figure.draw_defaults,
            verdict=intrusions_figure.verdict,
        ),
    ),
    remarks=(
        "- A few rows contribute most of the noise of these gradients. A mini-batch with one of "
        "them moves the uncorrected chain far away. The test rejects such steps and accepts most "
        "of the others.\n"
        "- A relaxation time is 2 / (h a) steps, with step size h and acceptance rate a. A chain "
        "shorter than a few relaxation times has not spread over the posterior, whatever its "
        "decisions.\n"
        "- If all rows were alike, correction would hardly be worthwhile. For N rows, gradients "
        "from n rows and d coefficients, the variances of uncorrected draws would be too large by "
        "the factor 1 + hN/(4n), and the log-ratio would have the variance hdN/n. Proposals are "
        "accepted where the latter is about 1, and there the variances would be too large by only "
        "1/(4d)."
    ),
)
