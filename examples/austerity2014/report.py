"""README and page of the site, written from saved results."""

import json
from collections.abc import Iterator
from pathlib import Path

from examples.austerity2014.experiment import Experiment, PaperFigure, Results
from examples.austerity2014.registry import NAMES, experiment

__all__ = ["page", "readme", "saved"]

INTRODUCTION = """\
# Austerity in MCMC Land, run again

The experiments of Korattikara, Chen and Welling (2014), *Austerity in MCMC Land: Cutting the
Metropolis-Hastings Budget* (ICML; longer version: arXiv 1304.5299), with the samplers of this
package.

    make austerity2014                    # everything, this page included
    make austerity2014 ARGS=--quick       # only see that it runs

or `python -m examples.austerity2014 [names] [--again] [--quick] [--data FOLDER] [--output FOLDER]`.
What has results is not run again without `--again`, and an experiment that was stopped goes on
after its last finished chain. Data sets are read from the folder that `--data` or the environment
variable PYMC_AUSTERITY_DATA names, else downloaded through scikit-learn. Every number and every yes
or no below is computed from the saved results by `python -m examples.austerity2014 --report`;
claims are the papers', in our words.

Each epsilon gets the papers' number of steps, or the share of it that is named below, and no chain
starts at a draw of the posterior: the way there is part of the risk. The second picture of each
pair shows what the step method with its defaults does with the same budget.
"""


def saved(folder: Path) -> Iterator[tuple[Experiment, Results]]:
    """Experiments whose results are in a folder, in the order of the paper."""
    for name in NAMES:
        file = folder / f"{name}.json"
        if file.is_file():
            yield experiment(name), json.loads(file.read_text())


def readme(folder: Path, pictures: str) -> str:
    """The whole README; `pictures` is the way from its place to the folder of pictures."""
    return f"{INTRODUCTION}\n{page(folder, pictures)}"


def page(folder: Path, pictures: str) -> str:
    """Table of all figures, and a section for each experiment, as Markdown."""
    found = list(saved(folder))
    lines = ["| figure | the paper | ours | agrees |", "| --- | --- | --- | --- |"]
    lines += [_row(figure, results) for e, results in found for figure in e.figures]
    sections = [_section(e, results, pictures) for e, results in found]
    return "\n".join(lines) + "\n\n" + "\n".join(sections)


def _row(figure: PaperFigure, results: Results) -> str:
    agrees, ours = figure.verdict(results)
    return f"| {figure.figure} | {figure.claim} | {ours} | {'yes' if agrees else '**no**'} |"


def _section(e: Experiment, results: Results, pictures: str) -> str:
    made = results["made"]
    lines = [f"## {e.title}", "", e.setting, ""]
    for figure in e.figures:
        lines += [f"![{figure.figure}]({pictures}/{figure.name}.png)", ""]
        lines += [f"![{figure.figure}, defaults]({pictures}/{figure.name}_defaults.png)", ""]
    lines += [e.remarks, ""] if e.remarks else []
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    lines += [
        f"Made on {made['date']} in {made['seconds'] / 60:.1f} minutes of processor time, Python "
        f"{made['python']}, {versions}, on one core: `python -m examples.austerity2014 {e.name}`.",
        "",
    ]
    return "\n".join(lines)
