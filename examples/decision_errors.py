"""How often the sequential test decides wrongly: digits 7 and 9 of MNIST, 2,000 real decisions.

A chain that reads all the data visits points of the posterior. From each of 2,000 of them a
proposal and a uniform number are drawn: (theta, theta', u) is what Metropolis-Hastings decides
about. All rows give the right decision; the sequential test is then asked at several epsilon, with
rows drawn in both ways.

Run ``python examples/decision_errors.py --data FOLDER`` with the folder that holds
``mnist_7v9.npz``, or name the folder in the environment variable PYMC_AUSTERITY_DATA. ``--quick``
asks about 200 triples and leaves the site as it is; otherwise the table and the picture of its page
are written.
"""

import argparse
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytensor
from scipy.stats import binomtest, norm

from pymc_austerity import AusterityMH
from pymc_austerity.proposals import RandomWalk
from pymc_austerity.rows import AllRows, FreshRows, Windows
from pymc_austerity.sequential import Decision, StudentT, UniformSurvey, decide
from pymc_austerity.step_methods.differences import RowDifferences

OUTPUT = Path(__file__).parent / "output"
SITE = Path(__file__).parents[1] / "docs" / "_generated"

DATA_FILE = "mnist_7v9.npz"
N_COMPONENTS = 50
PRIOR_SD = 10**-0.5  # a precision of 10
PROPOSAL_SD = 0.01
BATCH_SIZE = 500
EPSILONS = (0.01, 0.05, 0.1, 0.2)
DRAWS = {"all": AllRows, "windows": Windows, "fresh": FreshRows}


# ---------------------------------------------------------------------- data and model


def find_data(folder: str | None) -> Path:
    """Path of the data file, or an exit with a sentence that says what is missing."""
    folder = folder or os.environ.get("PYMC_AUSTERITY_DATA")
    if not folder:
        raise SystemExit(
            f"Name the folder that holds {DATA_FILE}: --data FOLDER, or PYMC_AUSTERITY_DATA=FOLDER."
        )
    path = Path(folder) / DATA_FILE
    if not path.is_file():
        raise SystemExit(f"There is no {DATA_FILE} in {folder}: name another folder with --data.")
    return path


def principal_components(pixels: np.ndarray, n_components: int) -> np.ndarray:
    """Scores of the first principal components, shape (n_rows, n_components).

    Pixels are divided by 255 and centred. The scores are not standardised: they keep the scale of
    the pixels, so that later components have smaller scores and less well known coefficients.
    """
    centred = pixels / 255.0
    centred -= centred.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)  # ascending
    return centred @ axes[:, : -n_components - 1 : -1]


def logistic_regression(covariates: np.ndarray, labels: np.ndarray) -> pm.Model:
    """Logistic regression with an intercept and the same normal prior on all coefficients."""
    design = np.column_stack([np.ones(len(covariates)), covariates])
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, PRIOR_SD, shape=design.shape[1])
        pm.Bernoulli("label", logit_p=design @ beta, observed=labels)
    return model


# ---------------------------------------------------------------------- triples


@dataclass(frozen=True)
class Question:
    """What a decision of Metropolis-Hastings is about.

    Attributes
    ----------
    current, proposed : float arrays, shape (d,)
        The two points.
    log_threshold : float
        What the sum of all row differences must exceed, nats.
    """

    current: np.ndarray
    proposed: np.ndarray
    log_threshold: float


def row_differences(sampler: AusterityMH, rows: str) -> RowDifferences:
    """Row differences of the sampler's model, on rows drawn in one of the ways in `DRAWS`."""
    source = sampler.all_differences.draw.source
    return replace(sampler.all_differences, draw=DRAWS[rows](source))


def answer(
    differences: RowDifferences,
    question: Question,
    *,
    epsilon: float,
    rng: np.random.Generator,
    batch_size: int = BATCH_SIZE,
) -> Decision:
    """Decide by the sequential test."""
    survey = UniformSurvey(
        differences.begin(question.proposed, question.current, rng),
        n_rows=differences.draw.source.n_rows,
        batch_size=batch_size,
    )
    return decide(survey, question.log_threshold, rule=StudentT(epsilon))


def exact_sampler(model: pm.Model) -> AusterityMH:
    """Plain Metropolis-Hastings with the fixed proposal of the experiment."""
    n_parameters = sum(model.initial_point()[value.name].size for value in model.value_vars)
    walk = RandomWalk(covariance=np.full(n_parameters, PROPOSAL_SD**2), scaling=1.0)
    return AusterityMH(epsilon=0.0, proposal=walk, tune=False, model=model)


def posterior_points(
    model: pm.Model, sampler: AusterityMH, n_points: int, *, thin: int, burn_in: int
) -> np.ndarray:
    """Points of a chain on all the data that starts at the mode, shape (n_points, d)."""
    with model:
        with pytensor.config.change_flags(mode="NUMBA"):
            mode = pm.find_MAP(progressbar=False)
        idata = pm.sample(
            step=sampler,
            tune=0,
            draws=burn_in + thin * n_points,
            chains=1,
            cores=1,
            initvals={"beta": mode["beta"]},
            random_seed=20140621,
            progressbar=False,
            compute_convergence_checks=False,
        )
    acceptance = float(idata.sample_stats["accepted"].mean())
    print(f"The chain on all rows accepts {acceptance:.0%} of its proposals.")
    return idata.posterior["beta"].to_numpy()[0, burn_in::thin]


def ask(sampler: AusterityMH, current: np.ndarray, rng: np.random.Generator) -> Question:
    """Draw a proposal and a uniform number at a point."""
    proposed, log_ratio = sampler.proposal.propose(sampler.proposal_state, current, rng)
    log_exact_ratio = float(sampler.exact_difference(proposed, current)) + log_ratio
    return Question(current, proposed, np.log1p(-rng.random()) - log_exact_ratio)


# ---------------------------------------------------------------------- the test, measured


@dataclass(frozen=True)
class Outcome:
    """What the test did with all the questions, at one epsilon and one way of drawing rows.

    Attributes
    ----------
    epsilon : float
        Threshold of one look.
    rows : str
        Way of drawing rows.
    wrong : bool array, shape (n_questions,)
        Whether the decision was not that of all rows.
    share : float array, shape (n_questions,)
        Share of the rows that was read.
    """

    epsilon: float
    rows: str
    wrong: np.ndarray
    share: np.ndarray

    @property
    def error_rate(self) -> float:
        """Share of the decisions that were wrong."""
        return float(self.wrong.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Binomial interval of 95 % (Wilson) for the error rate."""
        test = binomtest(int(self.wrong.sum()), self.wrong.size)
        low, high = test.proportion_ci(0.95, "wilson")
        return low, high


def judge(
    epsilon: float, rows: str, answers: Sequence[Decision], exact: Sequence[Decision], n_rows: int
) -> Outcome:
    """Compare the answers of the test with those of all rows."""
    wrong = [made.accept != right.accept for made, right in zip(answers, exact, strict=True)]
    share = [made.n_rows_used / n_rows for made in answers]
    return Outcome(epsilon, rows, np.array(wrong), np.array(share))


# ---------------------------------------------------------------------- the test, in theory


@dataclass(frozen=True)
class Theory:
    """Error and data usage of the test as functions of the standardised mean.

    The standardised means at the looks are a Gaussian Markov chain (section 5.1 of the paper): a
    Brownian bridge over its standard deviation, plus a drift. It is simulated here.

    Attributes
    ----------
    mu_std : float array, shape (n,)
        Distance of the mean from the threshold, ascending from 0.
    error : float array, shape (n,)
        Probability of a wrong decision.
    share : float array, shape (n,)
        Expected share of the rows that is read.
    """

    mu_std: np.ndarray
    error: np.ndarray
    share: np.ndarray

    @classmethod
    def simulate(
        cls, epsilon: float, n_rows: int, batch_size: int, rng: np.random.Generator
    ) -> "Theory":
        """Simulate 20,000 decisions at every distance."""
        share = np.arange(batch_size, n_rows, batch_size) / n_rows
        steps = np.sqrt(np.diff(share, prepend=0.0, append=1.0))
        motion = np.cumsum(steps * rng.standard_normal((20_000, steps.size)), axis=1)
        bridge = motion[:, :-1] - share * motion[:, -1:]
        noise = bridge / np.sqrt(share * (1.0 - share))
        mu_std = np.concatenate([[0.0], np.geomspace(0.05, 60.0, 50)])
        error, usage = np.empty(mu_std.size), np.empty(mu_std.size)
        for i, distance in enumerate(mu_std):
            z = distance * np.sqrt(share / (1.0 - share)) + noise
            stopped = np.abs(z) > norm.ppf(1.0 - epsilon)
            first = stopped.argmax(axis=1)
            early = stopped.any(axis=1)
            error[i] = np.mean(early & (z[np.arange(first.size), first] < 0.0))
            usage[i] = np.mean(np.where(early, share[first], 1.0))
        return cls(mu_std, error, usage)

    def at(self, mu_std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Error and share of the rows at given distances of either sign."""
        distance = np.abs(mu_std)
        return (
            np.interp(distance, self.mu_std, self.error),
            np.interp(distance, self.mu_std, self.share),
        )


# ---------------------------------------------------------------------- what is shown


def table(outcomes: list[Outcome], theories: dict[float, Theory], mu_std: np.ndarray) -> str:
    """Markdown table: measured next to theory."""
    lines = [
        "| epsilon | rows | wrong decisions | 95 % interval | in theory "
        "| worst case in theory | share of the data read | in theory |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for outcome in outcomes:
        theory = theories[outcome.epsilon]
        error, share = (values.mean() for values in theory.at(mu_std))
        low, high = outcome.interval
        lines.append(
            f"| {outcome.epsilon} | {outcome.rows} | {outcome.error_rate:.2%} "
            f"| {low:.2%} to {high:.2%} | {error:.2%} | {theory.error[0]:.0%} "
            f"| {outcome.share.mean():.1%} | {share:.1%} |"
        )
    return "\n".join(lines)


def summary(exact: Sequence[Decision], n_rows: int) -> str:
    """One sentence on what was asked."""
    accepted = np.mean([right.accept for right in exact])
    distance = np.abs([right.standardized_mean for right in exact])
    quartiles = ", ".join(f"{value:.1f}" for value in np.quantile(distance, [0.25, 0.5, 0.75]))
    return (
        f"{len(exact):,} triples, {n_rows:,} rows, {BATCH_SIZE} at a look. All rows accept "
        f"{accepted:.0%} of the proposals. The quartiles of $|\\mu_\\mathrm{{std}}|$ are "
        f"{quartiles}."
    )


def picture(
    outcomes: list[Outcome], theories: dict[float, Theory], mu_std: np.ndarray, path: Path
) -> None:
    """Error and data usage over the standardised mean: theory as lines, measured as points."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    colors = {epsilon: f"C{number}" for number, epsilon in enumerate(theories)}
    for epsilon, theory in theories.items():
        left.plot(theory.mu_std, theory.error, colors[epsilon], label=f"epsilon = {epsilon}")
        right.plot(theory.mu_std, theory.share, colors[epsilon])
    distance = np.abs(mu_std)
    eighths = np.array_split(np.argsort(distance), 8)
    centres = [distance[eighth].mean() for eighth in eighths]
    markers = {"windows": "o", "fresh": "x"}
    for outcome in outcomes:
        style = {"color": colors[outcome.epsilon], "marker": markers[outcome.rows], "ls": ""}
        left.plot(centres, [outcome.wrong[eighth].mean() for eighth in eighths], **style, ms=4)
        right.plot(centres, [outcome.share[eighth].mean() for eighth in eighths], **style, ms=4)
    for rows, marker in markers.items():
        left.plot([], [], f"k{marker}", ms=4, label=f"measured, {rows}")
    left.set(ylabel="wrong decisions", ylim=(0, 0.52))
    left.legend(frameon=False)
    right.set(ylabel="share of the data read", ylim=(0, 1.02))
    for axis in (left, right):
        axis.set(xlabel=r"$|\mu_\mathrm{std}|$", xlim=(0, 12))
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main() -> None:
    """Draw the triples, ask the test, show and write what it did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help=f"the folder that holds {DATA_FILE}")
    parser.add_argument("--quick", action="store_true", help="200 triples; the site stays as it is")
    options = parser.parse_args()
    n_triples, thin, burn_in = (200, 5, 200) if options.quick else (2_000, 20, 2_000)

    data = np.load(find_data(options.data))
    covariates = principal_components(data["X_train"], N_COMPONENTS)
    model = logistic_regression(covariates, data["y_train"])
    sampler = exact_sampler(model)
    points = posterior_points(model, sampler, n_triples, thin=thin, burn_in=burn_in)
    rng = np.random.default_rng(1)
    questions = [ask(sampler, point, rng) for point in points]
    all_rows = row_differences(sampler, "all")
    exact = [answer(all_rows, question, epsilon=0.0, rng=rng) for question in questions]
    mu_std = np.array([right.standardized_mean for right in exact])
    outcomes, theories = [], {}
    for epsilon in EPSILONS:
        theories[epsilon] = Theory.simulate(epsilon, sampler.n_rows, BATCH_SIZE, rng)
        for rows in ("windows", "fresh"):
            differences = row_differences(sampler, rows)
            made = [answer(differences, q, epsilon=epsilon, rng=rng) for q in questions]
            outcomes.append(judge(epsilon, rows, made, exact, sampler.n_rows))

    text = f"{summary(exact, sampler.n_rows)}\n\n{table(outcomes, theories, mu_std)}\n"
    print(f"\n{text}")
    OUTPUT.mkdir(exist_ok=True)
    picture(outcomes, theories, mu_std, OUTPUT / "decision_errors.png")
    if not options.quick:
        SITE.mkdir(exist_ok=True)
        (SITE / "decision_errors.md").write_text(text)
        shutil.copy(OUTPUT / "decision_errors.png", SITE)
    print(f"Picture: {OUTPUT / 'decision_errors.png'}")


if __name__ == "__main__":
    main()
