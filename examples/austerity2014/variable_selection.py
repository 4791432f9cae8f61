"""Experiment 3: which variables belong in a logistic regression."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.special import expit, logit

from examples.austerity2014 import inclusion_figure, risk, risk_figure
from examples.austerity2014.budgets import Budget, epsilon_of, label
from examples.austerity2014.experiment import Experiment, PaperFigure, Results
from examples.austerity2014.model_moves import ModelMoves
from examples.austerity2014.papers_chains import defaults_chains, papers_chains, seconds_of
from examples.austerity2014.parts import Parts
from examples.austerity2014.timed import TimedRun
from examples.shared.datasets import Arrays, NoData, load
from pymc_austerity import AusterityMH
from pymc_austerity.paper import InclusionIndicators, ReversibleJumpProposal, SpikeAndSlab

BUDGET = Budget(
    3_500.0,
    {label(0.0): 24_583, label(0.01): 137_375, label(0.05): 245_906, label(0.1): 419_090},
)
RATE, BATCH_SIZE = 1e-10, 500
JUMP_SHARE, STEP, BIRTH_SCALE = 0.5, 0.05, 0.2
AUDIT = 0.02
N_CHAINS, RATIO, N_TRUE, N_PREDICTED = 4, 0.1, 10_000, 1_000
DATA_SETS = ("miniboone", "ijcnn1")
NAMES = ("gamma", "beta", "intercept")
FULL: dict[str, Any] = {"n_chains": N_CHAINS, "ratio": RATIO, "n_true": N_TRUE}
QUICK: dict[str, Any] = {"n_chains": 2, "ratio": 1e-3, "n_true": 100}
QUICK_ROWS = 5_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Regression:
    """Standardized covariates and labels.

    Attributes
    ----------
    x, y : arrays, shapes (n, d) and (n,)
        Training rows.
    test_x : float array, shape (n_test, d)
        Rows to predict, standardized like the others.
    """

    x: Floats
    y: NDArray
    test_x: Floats

    @classmethod
    def of(cls, data: Arrays, n_rows: int | None = None) -> "Regression":
        """From the first rows of a data set; columns that are constant are left out."""
        x = data["X_train"][:n_rows].astype(np.float64)
        test_x = data["X_test"][:N_PREDICTED].astype(np.float64)
        varies = x.std(axis=0) > 0.0
        mean, sd = x[:, varies].mean(axis=0), x[:, varies].std(axis=0)
        x, test_x = ((each[:, varies] - mean) / sd for each in (x, test_x))
        return cls(x, data["y_train"][:n_rows], test_x)

    def model(self) -> pm.Model:
        """The paper's prior, and the likelihood of a logistic regression.

        With k of d variables in the model the prior is lambda^k B(k, d - k + 1) / |beta|_1^k. Their
        number is Poisson, truncated to 1, ..., d, and given it all models are equally likely. The
        coefficients are Laplace with a scale nu of density 1 / nu, integrated out, without the
        factor 2^-k, which the paper leaves out.
        """
        d = self.x.shape[1]
        n_active = pm.Poisson.dist(RATE)
        with pm.Model() as model:
            gamma = InclusionIndicators("gamma", d, n_active, initval=np.ones(d, dtype=np.int64))
            beta = SpikeAndSlab("beta", gamma, pm.Flat.dist(), initval=np.full(d, 0.1))
            intercept = pm.Normal("intercept", 0.0, 10.0)
            k = gamma.sum()
            slab = pt.gammaln(k) - k * pt.log(pt.abs(beta).sum())
            pm.Potential("slab", pt.switch(k > 0, slab, -np.inf))
            logits = intercept + pm.math.dot(self.x, beta)
            pm.Bernoulli("label", logit_p=logits, observed=self.y)
        return model

    def predictions(self, draws: Floats) -> Floats:
        """Probabilities of the rows to predict; draws of all variables, joined."""
        d = self.x.shape[1]
        return expit(draws[:, d : 2 * d] @ self.test_x.T + draws[:, 2 * d :])


def run(*, quick: bool, data: str | None, parts: Parts) -> Results:
    """Sample with every epsilon and with the defaults; compare with a long exact run."""
    name, arrays = first_of(DATA_SETS[::-1] if quick else DATA_SETS, data)
    regression = Regression.of(arrays, QUICK_ROWS if quick else None)
    found = compare(regression, parts, **(QUICK if quick else FULL))
    return {"data": name, "n_rows": len(regression.x), **found}


def first_of(names: tuple[str, ...], folder: str | None) -> tuple[str, Arrays]:
    """The first data set that can be had; the last one, or the sentence that says how."""
    *others, last = names
    for name in others:
        try:
            return name, load(name, folder)
        except NoData as missing:
            print(f"{missing} Taking {last} instead.", flush=True)
    return last, load(last, folder)


def compare(
    regression: Regression, parts: Parts, *, n_chains: int, ratio: float, n_true: int
) -> Results:
    """Risk curves, inclusion probabilities and rates of moves of every sampler."""
    with regression.model():
        truth = parts("truth", lambda: facts(regression, exact_run(regression, n_true)))
        about = partial(describe, regression, np.array(truth.pop("predictions")))
        chains = papers_chains(
            parts,
            {name: partial(papers_step, epsilon_of(name)) for name in BUDGET.steps},
            [start(regression, parts.rng(f"start {chain}")) for chain in range(n_chains)],
            BUDGET.steps_at(ratio),
            about,
        )
        chains["defaults"] = defaults_chains(
            parts, defaults_step, seconds_of(chains[label(0.0)]), n_chains, about
        )
    risks = {n: risk.together([c.pop("risk") for c in each]) for n, each in chains.items()}
    return {"budget": BUDGET.record(ratio), "risk": risks, "chains": chains, **truth}


def start(regression: Regression, rng: np.random.Generator) -> dict[str, NDArray]:
    """One variable drawn at random, with a coefficient of 0.1."""
    gamma = np.eye(regression.x.shape[1], dtype=np.int64)[rng.integers(regression.x.shape[1])]
    return {"gamma": gamma, "beta": 0.1 * gamma, "intercept": logit(np.mean(regression.y))}


def defaults_step() -> AusterityMH:
    """The moves of the paper's sampler, tuned, and decisions as they come."""
    return AusterityMH(proposal=ReversibleJumpProposal("beta", "gamma"))


def exact_run(regression: Regression, n_draws: int) -> dict[str, NDArray]:
    """Draws of exact Metropolis-Hastings that moves between models by their approximations."""
    burn_in = max(n_draws // 5, 100)
    idata = pm.sample(
        step=AusterityMH(epsilon=0.0, proposal=ModelMoves(regression.x, regression.y)),
        initvals={"intercept": np.array(0.0)},
        tune=0,
        draws=n_draws + burn_in,
        chains=1,
        cores=1,
        random_seed=3,
        progressbar=False,
        compute_convergence_checks=False,
    )
    return {name: idata.posterior[name].to_numpy()[0, burn_in:] for name in NAMES}


def papers_step(epsilon: float) -> AusterityMH:
    """Update, birth and death moves of fixed sizes, decided by the paper's test."""
    jump = ReversibleJumpProposal(
        "beta", "gamma", scaling=STEP, birth_scale=BIRTH_SCALE, jump_share=JUMP_SHARE
    )
    return AusterityMH(
        epsilon=epsilon,
        batch_size=BATCH_SIZE,
        control_variates=None,
        sampling="windows",
        proposal=jump,
        tune=False,
        audit=AUDIT if epsilon else 0.0,
    )


def facts(regression: Regression, true: dict[str, NDArray]) -> dict[str, Any]:
    """What the truth is, and how well it is known."""
    joined = np.column_stack([true[name] for name in NAMES])
    batches = [regression.predictions(p).mean(axis=0) for p in np.array_split(joined, 20)]
    return {
        "predictions": np.mean(batches, axis=0).tolist(),
        "truth_error": float(np.var(batches, axis=0, ddof=1).mean() / len(batches)),
        "inclusion": true["gamma"].mean(axis=0).tolist(),
        "inclusion_halves": [h.mean(axis=0).tolist() for h in np.array_split(true["gamma"], 2)],
    }


def describe(regression: Regression, truth: Floats, run: TimedRun) -> dict[str, Any]:
    """Risk of a chain; of its second half, inclusion probabilities and rates of moves."""
    half = run.seconds.shape[1] // 2
    statistics = run.idata.sample_stats
    gamma = run.draws("gamma")[0, half:]
    accepted = statistics["accepted"].to_numpy()[0, half + 1 :] > 0.5
    checked = statistics["audited"].to_numpy()[0, half + 1 :].astype(bool)
    wrong = checked & ~statistics["audit_agrees"].to_numpy()[0, half + 1 :].astype(bool)
    changes = np.diff(gamma.sum(axis=1))
    return {
        "risk": risk.curve(run, NAMES, regression.predictions, truth),
        "inclusion": gamma.mean(axis=0).round(4).tolist(),
        "size": float(gamma.sum(axis=1).mean()),
        "moves": {
            "update": float(np.mean(accepted & (changes == 0)) / (1.0 - JUMP_SHARE)),
            "birth": float(2.0 * np.mean(changes > 0) / JUMP_SHARE),
            "death": float(2.0 * np.mean(changes < 0) / JUMP_SHARE),
        },
        "audited": {
            "jumps": int(np.sum(checked & (changes != 0))),
            "wrong jumps": int(np.sum(wrong & (changes != 0))),
            "all": int(np.sum(checked)),
            "wrong": int(np.sum(wrong)),
        },
        "rows_per_step": float(run.rows[0, -1] / run.rows.shape[1]),
    }


EXPERIMENT = Experiment(
    name="variable_selection",
    title="Variable selection by reversible jumps",
    setting=(
        "- Data: MiniBooNE (130,065 rows, 50 variables), as in the paper, where it can be "
        "downloaded; otherwise ijcnn1 (49,990 rows, 22 variables). Columns are standardized.\n"
        "- Model: logistic regression with an intercept. The prior of a model with k of d "
        f"variables is {RATE:g}^k B(k, d - k + 1), divided by the k-th power of the sum of the "
        "absolute coefficients.\n"
        "- Sampler: half of the moves update one coefficient, with standard deviation "
        f"{STEP}; the others are births and deaths of a variable, and a new coefficient has "
        f"standard deviation {BIRTH_SCALE}. These sizes are fixed and are our choice. The test "
        f"reads {BATCH_SIZE} rows per look.\n"
        f"- Chains: {N_CHAINS}, which start with one variable drawn at random and make {RATIO:g} "
        "times as many steps as the paper's.\n"
        "- Risk: squared error of the predictive probability averaged over all draws so far; mean "
        f"over {N_PREDICTED:,} test rows and the chains.\n"
        f"- True values: from an exact chain of {N_TRUE:,} draws that proposes coefficients from a "
        "normal approximation of each model and also exchanges variables. The paper uses 400,000 "
        "steps with the same moves as its other chains.\n"
        '- Defaults: `AusterityMH(proposal=ReversibleJumpProposal("beta", "gamma"))`, the same '
        "moves with tuned sizes, in the time of the exact chain. Set-up and tuning take a large "
        "part of that time (see the table)."
    ),
    run=run,
    figures=(
        PaperFigure(
            name="variable_selection_risk",
            figure="ICML figure 4",
            claim=(
                "Within any affordable time, some epsilon > 0 has the lowest risk of the "
                "predictive mean."
            ),
            draw=risk_figure.draw,
            beside=risk_figure.draw_defaults,
            verdict=inclusion_figure.verdict_on_risk,
        ),
        PaperFigure(
            name="variable_selection_inclusion",
            figure="ICML supplement, variable selection",
            claim=(
                "Approximate chains have the same inclusion probabilities as exact chains and "
                "accept moves about as often."
            ),
            draw=inclusion_figure.draw,
            beside=inclusion_figure.draw_defaults,
            verdict=inclusion_figure.verdict,
        ),
    ),
    remarks=(
        "- The prior penalizes each further variable by 23 nats. Spread over all rows this is "
        "0.0005 nats per row, much less than the standard error of the first mini-batches. So some "
        "births and deaths are accepted by mistake at every stage of the chain, more of them with "
        "a larger epsilon.\n"
        "- These mistakes are a bias that more steps do not remove. Early, while important "
        "variables are still missing, the bias does no harm, and cheap steps find these variables "
        "sooner.\n"
        "- The first ten variables of ijcnn1 are indicators, exactly one of which is 1, so each of "
        "them can be replaced by others. Models with different indicators are about equally "
        "probable, but births and deaths rarely lead from one to another. For these moves the "
        "posterior therefore has local modes, with exact decisions or not, as in the paper."
    ),
)
