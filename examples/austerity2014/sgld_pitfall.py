"""Experiment 4: stochastic gradient Langevin dynamics next to a cliff of the density."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.austerity2014.budgets import label
from examples.austerity2014.experiment import Experiment, NumberTable, PaperFigure, Results, Verdict
from examples.austerity2014.parts import Parts
from examples.austerity2014.tables import by_sampler, texts
from pymc_austerity import AusterityMH, LangevinProposal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_ROWS, SLOPE = 10_000, 0.5
PRECISION, PENALTY = 3.0, 4_950.0
STEP_SIZE, BATCH_SIZE, EPSILON = 5e-6, 500, 0.5
N_DRAWS, N_QUICK, SEED = 100_000, 500, 20_140_621
DEFAULTS = "defaults"
EDGES = np.linspace(-0.01, 0.06, 71)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """Rows of the regression, and its posterior up to a constant.

    Attributes
    ----------
    x, y : float arrays, shape (n,)
        Predictor and outcome.
    """

    x: Floats
    y: Floats

    @classmethod
    def draw(cls, rng: np.random.Generator) -> "Line":
        """Uniform predictors and normal noise, with their expected sums of squares and products."""
        x = rng.uniform(-1.0, 1.0, size=N_ROWS)
        x *= np.sqrt(N_ROWS / 3.0 / (x @ x))
        noise = rng.normal(scale=PRECISION**-0.5, size=N_ROWS)
        noise -= (noise @ x) / (x @ x) * x
        return cls(x, SLOPE * x + noise)

    def log_density(self, theta: Floats) -> Floats:
        """Log-likelihood and log-prior, nats, but for a constant."""
        xx, xy = self.x @ self.x, self.x @ self.y
        return -0.5 * PRECISION * (xx * theta**2 - 2.0 * xy * theta) - PENALTY * np.abs(theta)

    def gradient(self, theta: Floats) -> Floats:
        """Gradient of that."""
        x, y = self.x, self.y
        return PRECISION * (x @ y - theta * (x @ x)) - PENALTY * np.sign(theta)

    def model(self) -> pm.Model:
        """The same in PyMC."""
        with pm.Model() as model:
            theta = pm.Laplace("theta", 0.0, 1.0 / PENALTY)
            pm.Normal("y", theta * self.x, PRECISION**-0.5, observed=self.y)
        return model


def run(*, quick: bool, data: str | None, parts: Parts) -> Results:
    """Sample without correction, with the test, exactly, and with the defaults."""
    line, n_draws = Line.draw(np.random.default_rng(SEED)), N_QUICK if quick else N_DRAWS
    truth, mean, sd = posterior(line)
    samplers: dict[str, dict[str, Any]] = {
        "uncorrected": papers_settings(test=None),
        label(EPSILON): papers_settings(epsilon=EPSILON),
        "exact": papers_settings(epsilon=0.0),
        DEFAULTS: {},
    }
    grid = 0.5 * (EDGES[1:] + EDGES[:-1])
    return {
        "n_draws": n_draws,
        "truth": truth.tolist(),
        "mean": mean,
        "sd": sd,
        "gradient": [float(line.gradient(theta)) for theta in grid],
        "samplers": {
            name: parts(name, partial(sampled, line, truth, n_draws, settings))
            for name, settings in samplers.items()
        },
    }


def sampled(line: Line, truth: Floats, n_draws: int, settings: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a chain."""
    return describe(sample(line, n_draws, **settings), truth)


def papers_settings(**decided: Any) -> dict[str, Any]:
    """Langevin moves, taken as they come with ``test=None``, else decided by the test."""
    return {
        "batch_size": BATCH_SIZE,
        "control_variates": None,
        "sampling": "windows",
        "proposal": LangevinProposal(STEP_SIZE, BATCH_SIZE, preconditioner=None),
        "tune": False,
        **decided,
    }


def sample(line: Line, n_draws: int, **settings: Any) -> Floats:
    """One chain from the mode; the defaults tune before it."""
    with line.model():
        step = AusterityMH(**settings)
        idata = pm.sample(
            step=step,
            tune=0 if settings else step.default_tune_steps,
            draws=n_draws,
            chains=1,
            cores=1,
            initvals={"theta": mode(line)},
            random_seed=4,
            progressbar=False,
            compute_convergence_checks=False,
        )
    draws: Floats = idata.posterior["theta"].to_numpy()[0]
    return draws


def mode(line: Line) -> float:
    """Where the gradient to the right of zero vanishes."""
    return float((line.x @ line.y - PENALTY / PRECISION) / (line.x @ line.x))


def posterior(line: Line) -> tuple[Floats, float, float]:
    """Probabilities of the bins, mean and sd, by quadrature."""
    theta = np.linspace(-0.05, 0.15, 200_001)
    weights = np.exp(line.log_density(theta) - line.log_density(np.array(mode(line))))
    weights /= weights.sum()
    mean = weights @ theta
    bins, _ = np.histogram(theta, EDGES, weights=weights)
    return bins, float(mean), float(np.sqrt(weights @ (theta - mean) ** 2))


def describe(draws: Floats, truth: Floats) -> dict[str, Any]:
    """Histogram, moments and distance from the truth in total variation, over the bins."""
    counts, _ = np.histogram(draws, EDGES)
    shares = counts / draws.size
    outside = 1.0 - shares.sum()
    return {
        "shares": shares.tolist(),
        "mean": float(draws.mean()),
        "sd": float(draws.std()),
        "total_variation": float(0.5 * (np.abs(shares - truth).sum() + outside)),
    }


def draw(results: Results) -> "Figure":
    """Posterior, its gradient, and both samplers over it."""
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.4), sharex=True, layout="constrained")
    width, centers = np.diff(EDGES), 0.5 * (EDGES[1:] + EDGES[:-1])
    density = results["truth"] / width
    axes[0, 0].stairs(density, EDGES, color="k")
    axes[0, 0].set_title("posterior, by quadrature")
    axes[0, 1].plot(centers, results["gradient"], "k")
    axes[0, 1].set_title("gradient of its logarithm")
    titles = {"uncorrected": "SGLD, uncorrected", label(EPSILON): f"test, epsilon = {EPSILON}"}
    for axis, (name, title) in zip(axes[1], titles.items(), strict=True):
        _histogram(results, name, title, axis)
    return figure


def draw_defaults(results: Results) -> "Figure":
    """Exact decisions on the same moves, and the defaults, over the posterior."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.9), sharey=True, layout="constrained")
    titles = {"exact": "Langevin moves, exact decisions", DEFAULTS: "defaults"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        _histogram(results, name, title, axis)
    return figure


def _histogram(results: Results, name: str, title: str, axis: "Axes") -> None:
    shares, width = np.array(results["samplers"][name]["shares"]), np.diff(EDGES)
    axis.stairs(shares / width, EDGES, fill=True, color="#56B4E9")
    axis.stairs(results["truth"] / width, EDGES, color="k")
    axis.set(title=title, xlabel="theta")


def verdict(results: Results) -> Verdict:
    """Whether the test removes four fifths of the distance that exact decisions do not have."""
    found = results["samplers"]
    raw, test, exact = (
        found[name]["total_variation"] for name in ("uncorrected", label(EPSILON), "exact")
    )
    ours = (
        f"The total variation distance from the posterior is {raw:.2f} without correction, "
        f"{test:.3f} with the test and {exact:.3f} with exact decisions."
    )
    agrees = raw - exact > 0.1 and test - exact < 0.2 * (raw - exact)
    return Verdict(agrees, ours, numbers(results))


def numbers(results: Results) -> NumberTable:
    """Distance, error of the mean, and draws left of zero, of every sampler."""
    found = results["samplers"]
    shift = {n: (each["mean"] - results["mean"]) / results["sd"] for n, each in found.items()}
    caption = (
        f"{results['n_draws']:,} draws of each sampler. The total variation distance is that of "
        f"the histograms; {left(results['truth']):.2%} of the posterior lies left of zero."
    )
    rows = {
        "total variation distance": texts(
            {name: each["total_variation"] for name, each in found.items()}, ".3f"
        ),
        "error of the mean, in posterior sd": texts(shift, "z.2f"),
        "draws left of zero": texts({n: left(each["shares"]) for n, each in found.items()}, ".2%"),
    }
    return by_sampler(caption, rows)


def left(shares: Sequence[float]) -> float:
    """Share left of zero."""
    return float(np.sum(np.array(shares)[EDGES[1:] < 1e-9]))


EXPERIMENT = Experiment(
    name="sgld_pitfall",
    title="The pitfall of Langevin dynamics without correction",
    setting=(
        f"- Data: {N_ROWS:,} rows y = {SLOPE} x + noise. The paper does not give the distribution "
        "of x; here it is uniform on (-1, 1). The likelihood then pulls away from zero only "
        "slightly harder than the prior pulls towards it, which gives the cliff that the paper "
        "describes. Sums of squares and products are set to their expected values.\n"
        "- Model: L1-regularized linear regression with one coefficient, theta; normal likelihood "
        f"with precision {PRECISION:g}, prior proportional to exp(-{PENALTY:g} |theta|).\n"
        f"- Sampler: Langevin proposals with step size {STEP_SIZE:g} and gradients from "
        f"{BATCH_SIZE} rows. The test (epsilon = {EPSILON}) has a single look at {BATCH_SIZE} "
        "rows.\n"
        f"- Chains: {N_DRAWS:,} draws of each sampler, from the mode.\n"
        "- True values: the posterior by quadrature.\n"
        "- Defaults: `AusterityMH()`, with as many draws after tuning."
    ),
    run=run,
    figures=(
        PaperFigure(
            name="sgld_pitfall",
            figure="ICML figure 5",
            claim=(
                "Uncorrected SGLD gets into the region of low probability left of the mode, jumps "
                "from there far to the right, and takes a long time to come back. With the "
                "approximate test, the draws are close to the posterior."
            ),
            draw=draw,
            beside=draw_defaults,
            verdict=verdict,
        ),
    ),
    remarks=(
        "- To the left of zero the gradient is so large that a proposal from there lands far to "
        "the right. The reverse of a move to the left of zero is therefore extremely improbable, "
        "and the Metropolis-Hastings ratio of the move is close to zero. Exact decisions and the "
        "test both reject it, so they visit this region less often than they should."
    ),
)
