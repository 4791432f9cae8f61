"""Draw the triples, ask the test, show and write what it did."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import examples.decision_errors as example
from examples.decision_errors import shown
from examples.decision_errors.acceptance import acceptance_errors
from examples.decision_errors.asked import answer, measure, spread_of_orders
from examples.shared.datasets import load
from examples.shared.digits import Digits, logistic_regression, papers_walk, posterior_mode
from examples.shared.triples import ask, differences, posterior_points, trial_run

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "examples" / "output"
SITE = ROOT / "docs" / "_generated"

EPSILONS = (0.01, 0.05, 0.1, 0.2)
FULL = {"n_triples": 2_000, "thin": 20, "burn_in": 2_000, "n_pairs": 200, "n_orders": 400}
QUICK = {"n_triples": 400, "thin": 5, "burn_in": 200, "n_pairs": 20, "n_orders": 50}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.decision_errors", description=example.__doc__.splitlines()[0]
    )
    parser.add_argument("--data", metavar="FOLDER", help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="400 triples; the site stays as it is")
    options = parser.parse_args(arguments)
    digits = Digits.of(load("mnist_7v9", options.data))
    text, pictures = find_errors(digits, **(QUICK if options.quick else FULL))
    print(f"\n{text}")
    OUTPUT.mkdir(exist_ok=True)
    for name, picture in pictures.items():
        picture.savefig(OUTPUT / name, dpi=80)
        plt.close(picture)
        print(f"Picture: {OUTPUT / name}")
        if not options.quick:
            shutil.copy(OUTPUT / name, SITE)
    if not options.quick:
        (SITE / "decision_errors.md").write_text(text)


def find_errors(
    digits: Digits, *, n_triples: int, thin: int, burn_in: int, n_pairs: int, n_orders: int
) -> tuple[str, dict[str, Figure]]:
    """Tables as one text, and pictures by the names of their files."""
    mode, _ = posterior_mode(digits.design, digits.labels)
    with logistic_regression(digits.design, digits.labels):
        sampler = papers_walk(mode.size, epsilon=0.0)
        points = posterior_points(sampler, mode, n_triples, thin=thin, burn_in=burn_in)
    rng = np.random.default_rng(1)
    sampling = sampler.target.sampling  # of all rows, at every decision
    questions = [ask(sampler, point, rng) for point in points]
    exact = [answer(sampling, question, epsilon=0.0, rng=rng) for question in questions]
    outcomes = []
    for epsilon in EPSILONS:
        outcomes += measure(sampling, questions, exact, epsilon=epsilon, rng=rng)
    some = slice(0, n_triples // 4)
    spread = spread_of_orders(sampling, questions[some], exact[some], epsilon=0.05, rng=rng)

    trial = trial_run((differences(sampler, question) for question in questions), questions)
    chosen = questions[:: n_triples // n_pairs]
    rows = [differences(sampler, question) for question in chosen]
    pairs = trial_run(rows, chosen)
    errors = acceptance_errors(rows, pairs, EPSILONS, n_orders=n_orders, rng=rng)
    of_pairs = (
        f"Acceptance probabilities of {n_pairs} of the pairs, each from {n_orders} random orders:"
    )
    parts = [
        shown.summary(exact, sampler.n_rows),
        shown.table(outcomes, trial),
        spread,
        of_pairs,
        shown.table_of_acceptance(errors),
    ]
    pictures = {
        "decision_errors.png": shown.over_distance(outcomes, trial),
        "decision_errors_epsilon.png": shown.over_epsilon(outcomes, errors, trial, pairs),
    }
    return "\n\n".join(parts) + "\n", pictures


if __name__ == "__main__":
    main()
