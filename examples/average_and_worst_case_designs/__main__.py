"""Design tests, ask them about new decisions, show and write what they did."""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import examples.average_and_worst_case_designs as example
from examples.average_and_worst_case_designs import decisions, shown
from examples.average_and_worst_case_designs.designs import designs, measure

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "examples" / "output"
SITE = ROOT / "docs" / "_generated"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {example.__name__}", description=example.__doc__.splitlines()[0]
    )
    parser.add_argument("--data", metavar="FOLDER", help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="few decisions; the site stays")
    options = parser.parse_args(arguments)
    n, thin, n_orders, n_signals = (8, 2, 20, 5_000) if options.quick else (100, 20, 100, 100_000)
    sets = {
        "MNIST 7 v 9": decisions.of_digits(options.data, n, thin),
        f"{n_signals:,} mixed signals": decisions.of_signals(n_signals, n, thin),
    }
    rng = np.random.default_rng(8)
    by_data = {
        name: measure(designs(training.trial), test, n_orders, rng)
        for name, (training, test) in sets.items()
    }
    text = f"{shown.verdict(by_data)}\n{shown.table(by_data)}"
    print(text)
    OUTPUT.mkdir(exist_ok=True)
    figure, name = shown.picture(by_data), "average_and_worst_case_designs.png"
    figure.savefig(OUTPUT / name, dpi=80)
    plt.close(figure)
    if not options.quick:
        (SITE / "average_and_worst_case_designs.md").write_text(text)
        shutil.copy(OUTPUT / name, SITE / name)


if __name__ == "__main__":
    main()
