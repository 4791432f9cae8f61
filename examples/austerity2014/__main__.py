"""Run experiments, draw their figures, and write the README and the page of the site."""

import argparse
import datetime
import json
import logging
import os
import platform
from importlib.metadata import version
from pathlib import Path

# One core: what linear algebra libraries and numba do with more is not what is measured.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import matplotlib as mpl  # noqa: E402

mpl.use("agg")

import matplotlib.pyplot as plt  # noqa: E402

from examples.austerity2014 import report  # noqa: E402
from examples.austerity2014.experiment import Experiment, Results  # noqa: E402
from examples.austerity2014.parts import Parts  # noqa: E402
from examples.austerity2014.registry import NAMES, experiment  # noqa: E402

ROOT = Path(__file__).parents[2]
README = Path(__file__).parent / "README.md"
RESULTS = ROOT / "results" / "austerity2014"
SITE = ROOT / "docs" / "_generated" / "austerity2014"
QUICK = ROOT / "examples" / "output" / "austerity2014"

SEED = 20_140_621
PACKAGES = ("pymc", "pytensor", "numba", "numpy")


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    options = parsed(arguments)
    folder = options.output or (QUICK if options.quick else RESULTS)
    pictures = SITE if folder == RESULTS else folder
    for each in (folder, pictures):
        each.mkdir(parents=True, exist_ok=True)
    names = options.names or NAMES
    for name in () if options.report else names:
        file = folder / f"{name}.json"
        if options.again or not file.is_file():
            print(f"{name} ...", flush=True)
            parts = Parts(file.with_suffix(".parts"), SEED)
            results = run(experiment(name), options, parts)
            file.write_text(json.dumps(results) + "\n")
            parts.remove()
    for e, results in report.saved(folder):
        if e.name in names:
            draw(e, results, pictures)
    if folder == RESULTS:
        README.write_text(report.readme(RESULTS, "../../docs/_generated/austerity2014"))
        (SITE / "page.md").write_text(report.page(RESULTS, "_generated/austerity2014"))
    else:
        (folder / "README.md").write_text(report.readme(folder, "."))


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Options."""
    parser = argparse.ArgumentParser(prog="python -m examples.austerity2014", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(NAMES)}; default all")
    parser.add_argument("--again", action="store_true", help="run again what has results")
    parser.add_argument("--quick", action="store_true", help="only check that everything runs")
    parser.add_argument("--report", action="store_true", help="run nothing; draw saved results")
    parser.add_argument("--data", metavar="FOLDER", help="folder of data sets")
    parser.add_argument("--output", metavar="FOLDER", type=Path, help="folder for the results")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"{', '.join(unknown)}: not one of {', '.join(NAMES)}")
    return options


def run(e: Experiment, options: argparse.Namespace, parts: Parts) -> Results:
    """Run what is not finished of an experiment, and say when and with what."""
    logging.getLogger("pymc").setLevel(logging.ERROR)  # PyMC sets it when it is imported
    results = e.run(quick=options.quick, data=options.data, parts=parts)
    results["made"] = {
        "date": datetime.date.today().isoformat(),
        "seconds": round(parts.seconds, 1),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
    }
    return results


def draw(e: Experiment, results: Results, folder: Path) -> None:
    """Draw the figures of an experiment, and say what they show."""
    for figure in e.figures:
        for name, make in ((figure.name, figure.draw), (f"{figure.name}_defaults", figure.beside)):
            picture = make(results)
            picture.savefig(folder / f"{name}.png", dpi=80)
            plt.close(picture)
        verdict = figure.verdict(results)
        agrees = "agrees" if verdict.agrees else "DOES NOT AGREE"
        print(f"{figure.figure}: {agrees}. {verdict.ours}")


if __name__ == "__main__":
    main()
