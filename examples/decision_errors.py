"""How often the sequential test decides wrongly: digits 7 and 9 of MNIST, 2,000 real decisions.

A chain that reads all the data visits points of the posterior. From each of 2,000 of them a
proposal and a uniform number are drawn: (theta, theta', u) is what Metropolis-Hastings decides
about. All rows give the right decision; the sequential test is then asked at several epsilon, with
rows drawn in both ways.

Run ``python examples/decision_errors.py --data FOLDER`` with the folder that holds
``mnist_7v9.npz``, or name the folder in the environment variable PYMC_AUSTERITY_DATA. ``--quick``
asks about 400 triples and leaves the site as it is; otherwise the table and the picture of its page
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
from scipy.special import expit
from scipy.stats import binomtest, norm, sem, t

from pymc_austerity import AusterityMH
from pymc_austerity.proposals import RandomWalk
from pymc_austerity.rows import FreshRows, SharedRows, Windows
from pymc_austerity.sequential import Decision, StudentT, decide
from pymc_austerity.step_methods.sampling import UniformSampling

OUTPUT = Path(__file__).parent / "output"
SITE = Path(__file__).parents[1] / "docs" / "_generated"

DATA_FILE = "mnist_7v9.npz"
N_COMPONENTS = 50
PRIOR_SD = 10**-0.5  # a precision of 10
PROPOSAL_SD = 0.01
BATCH_SIZE = 500
EPSILONS = (0.01, 0.05, 0.1, 0.2)
N_ORDERS = 40  # in which rows are stored, for windows


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


def with_intercept(covariates: np.ndarray) -> np.ndarray:
    """Design matrix: a column of ones in front."""
    return np.column_stack([np.ones(len(covariates)), covariates])


def logistic_regression(design: np.ndarray, labels: np.ndarray) -> pm.Model:
    """Logistic regression, all coefficients with the same normal prior."""
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, PRIOR_SD, shape=design.shape[1])
        pm.Bernoulli("label", logit_p=design @ beta, observed=labels)
    return model


def posterior_mode(design: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mode of that model by Newton's method."""
    beta, precision = np.zeros(design.shape[1]), PRIOR_SD**-2
    for _ in range(20):
        probability = expit(design @ beta)
        gradient = design.T @ (labels - probability) - precision * beta
        information = (design.T * probability * (1.0 - probability)) @ design
        beta += np.linalg.solve(information + precision * np.eye(beta.size), gradient)
    return beta


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


def on_fresh_rows(sampling: UniformSampling, batch_size: int = BATCH_SIZE) -> UniformSampling:
    """Sampling of the same differences, of rows drawn anew for every decision."""
    return replace(sampling, draw=FreshRows(sampling.draw.source), batch_size=batch_size)


def on_windows(
    sampling: UniformSampling, rng: np.random.Generator, batch_size: int = BATCH_SIZE
) -> UniformSampling:
    """Sampling of the same differences, of consecutive rows in a new random order."""
    stored = sampling.draw.source.window(0, sampling.n_rows)
    rows = SharedRows(stored, rng.permutation(sampling.n_rows))
    return replace(sampling, draw=Windows(rows), batch_size=batch_size)


def answer(
    sampling: UniformSampling, question: Question, *, epsilon: float, rng: np.random.Generator
) -> Decision:
    """Decide by the sequential test."""
    survey = sampling.begin(question.proposed, question.current, rng)
    return decide(survey, question.log_threshold, rule=StudentT(epsilon))


def exact_sampler(n_parameters: int) -> AusterityMH:
    """Plain Metropolis-Hastings with the fixed proposal of the experiment."""
    walk = RandomWalk(covariance=np.full(n_parameters, PROPOSAL_SD**2), scaling=1.0)
    return AusterityMH(epsilon=0.0, proposal=walk, tune=False)


def posterior_points(
    sampler: AusterityMH, start: np.ndarray, n_points: int, *, thin: int, burn_in: int
) -> np.ndarray:
    """Points of a chain on all the data, shape (n_points, d)."""
    idata = pm.sample(
        step=sampler,
        tune=0,
        draws=burn_in + thin * n_points,
        chains=1,
        cores=1,
        initvals={"beta": start},
        random_seed=20140621,
        progressbar=False,
        compute_convergence_checks=False,
    )
    return idata.posterior["beta"].to_numpy()[0, burn_in::thin]


def ask(sampler: AusterityMH, current: np.ndarray, rng: np.random.Generator) -> Question:
    """Draw a proposal and a uniform number at a point."""
    proposed, log_ratio = sampler.proposal.propose(sampler.proposal_state, current, rng)
    log_exact_ratio = float(sampler.machinery.exact_difference(proposed, current)) + log_ratio
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
    n_orders : int
        Orders of the rows, each of which served the same number of consecutive questions. 0 where
        every decision had rows of its own.
    """

    epsilon: float
    rows: str
    wrong: np.ndarray
    share: np.ndarray
    n_orders: int = 0

    @property
    def error_rate(self) -> float:
        """Share of the decisions that were wrong."""
        return float(self.wrong.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of 95 % for the error rate.

        Binomial (Wilson) for independent decisions. Decisions on windows of the same order are not
        independent, but orders are: Student's t on their error rates.
        """
        if self.n_orders:
            rates = self.wrong.reshape(self.n_orders, -1).mean(axis=1)
            low, high = t.interval(0.95, self.n_orders - 1, rates.mean(), sem(rates))
        else:
            test = binomtest(int(self.wrong.sum()), self.wrong.size)
            low, high = test.proportion_ci(0.95, "wilson")
        return max(low, 0.0), high


def judge(
    answers: Sequence[Decision], exact: Sequence[Decision], n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Whether each answer is wrong, and the share of the rows that it read."""
    wrong = [made.accept != right.accept for made, right in zip(answers, exact, strict=True)]
    share = [made.n_rows_used / n_rows for made in answers]
    return np.array(wrong), np.array(share)


def measure(
    sampling: UniformSampling,
    questions: Sequence[Question],
    exact: Sequence[Decision],
    *,
    epsilon: float,
    rng: np.random.Generator,
) -> list[Outcome]:
    """Ask every question once for each way of drawing rows; windows in `N_ORDERS` orders."""
    n_rows = sampling.n_rows
    fresh = on_fresh_rows(sampling)
    on_fresh = [answer(fresh, question, epsilon=epsilon, rng=rng) for question in questions]
    on_window = []
    for group in np.array_split(np.arange(len(questions)), N_ORDERS):
        windows = on_windows(sampling, rng)
        on_window += [answer(windows, questions[i], epsilon=epsilon, rng=rng) for i in group]
    return [
        Outcome(epsilon, "windows", *judge(on_window, exact, n_rows), n_orders=N_ORDERS),
        Outcome(epsilon, "fresh", *judge(on_fresh, exact, n_rows)),
    ]


def spread_of_orders(
    sampling: UniformSampling,
    questions: Sequence[Question],
    exact: Sequence[Decision],
    *,
    epsilon: float,
    rng: np.random.Generator,
) -> str:
    """A sentence on how much the error rate depends on the order in which rows are stored."""
    rates = []
    for _ in range(N_ORDERS):
        windows = on_windows(sampling, rng)
        made = [answer(windows, question, epsilon=epsilon, rng=rng) for question in questions]
        wrong, _ = judge(made, exact, sampling.n_rows)
        rates.append(wrong.mean())
    mean, sd = np.mean(rates), np.std(rates, ddof=1)
    binomial = np.sqrt(mean * (1.0 - mean) / len(questions))
    return (
        f"{len(questions):,} of the triples were asked again at epsilon = {epsilon}, in each of "
        f"{N_ORDERS} orders of the rows: the error rates have a mean of {mean:.1%} and a standard "
        f"deviation of {sd:.1%}, where independent decisions would give {binomial:.1%}."
    )


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
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    """Draw the triples, ask the test, show and write what it did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help=f"the folder that holds {DATA_FILE}")
    parser.add_argument("--quick", action="store_true", help="400 triples; the site stays as it is")
    options = parser.parse_args()
    n_triples, thin, burn_in = (400, 5, 200) if options.quick else (2_000, 20, 2_000)

    data = np.load(find_data(options.data))
    design = with_intercept(principal_components(data["X_train"], N_COMPONENTS))
    mode = posterior_mode(design, data["y_train"])
    with logistic_regression(design, data["y_train"]):
        sampler = exact_sampler(n_parameters=mode.size)
        points = posterior_points(sampler, mode, n_triples, thin=thin, burn_in=burn_in)
    rng = np.random.default_rng(1)
    sampling = sampler.machinery.sampling  # of all rows, at every decision
    questions = [ask(sampler, point, rng) for point in points]
    exact = [answer(sampling, question, epsilon=0.0, rng=rng) for question in questions]
    mu_std = np.array([right.standardized_mean for right in exact])
    outcomes, theories = [], {}
    for epsilon in EPSILONS:
        theories[epsilon] = Theory.simulate(epsilon, sampler.n_rows, BATCH_SIZE, rng)
        outcomes += measure(sampling, questions, exact, epsilon=epsilon, rng=rng)
    some = slice(0, n_triples // 4)
    spread = spread_of_orders(sampling, questions[some], exact[some], epsilon=0.05, rng=rng)

    results = table(outcomes, theories, mu_std)
    text = f"{summary(exact, sampler.n_rows)}\n\n{results}\n\n{spread}\n"
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
