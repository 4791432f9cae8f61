"""README and page of the site, written from saved results."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from examples.austerity2014.experiment import Experiment, PaperFigure, Results
from examples.austerity2014.registry import NAMES, experiment

INTRODUCTION = """\
# Austerity in MCMC Land, run again

The experiments of Korattikara, Chen and Welling (2014), *Austerity in MCMC Land: Cutting the
Metropolis-Hastings Budget* (ICML; longer version: arXiv 1304.5299), repeated with the samplers of
this package.

    make austerity2014                    # run everything and write this page
    make austerity2014 ARGS=--quick       # only check that everything runs

or `python -m examples.austerity2014 [names] [--again] [--quick] [--report] [--data FOLDER]
[--output FOLDER]`.

- Experiments that already have results are run again only with `--again`. An interrupted experiment
  resumes after its last finished chain.
- Data sets are read from the folder given by `--data` or by the environment variable
  PYMC_AUSTERITY_DATA. Without either, they are downloaded through scikit-learn.
- Every number and every yes or no below is computed from the saved results; `--report` does only
  this. The claims are those of the papers, in our words.
- Each epsilon gets the papers' number of steps, or the share of it that is stated with the
  experiment. No chain starts at a draw from the posterior, so the transient is part of the risk.
- The second picture of each pair shows what the step method with its defaults achieves with the
  same budget.
"""


def saved(folder: Path) -> Iterator[tuple[Experiment, Results]]:
    """Experiments whose results are in a folder, in the order of the paper."""
    for name in NAMES:
        file = folder / f"{name}.json"
        if file.is_file():
            yield experiment(name), json.loads(file.read_text())


def readme(folder: Path, pictures: str) -> str:
    """The whole README; `pictures` is the path from its folder to the folder of pictures."""
    return f"{INTRODUCTION}\n{page(folder, pictures)}"


def page(folder: Path, pictures: str) -> str:
    """Table of all figures, what was found, and a section for each experiment, as Markdown."""
    found = list(saved(folder))
    every = [(figure, figure.verdict(results)) for e, results in found for figure in e.figures]
    rows = [(figure.figure, "yes" if its.agrees else "**no**") for figure, its in every]
    told = "\n".join(
        f"- **{figure.figure}**\n  - The paper: {figure.claim}\n  - Here: {its.ours}"
        for figure, its in every
    )
    sections = [_section(e, results, pictures) for e, results in found]
    return "\n\n".join([_table(("figure", "agrees"), rows), told, *sections]) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], *, align: str = "---") -> str:
    """Table as Markdown; `align` is put below all columns but the first."""
    rule = ("---", *[align] * (len(header) - 1))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def _section(e: Experiment, results: Results, pictures: str) -> str:
    figures = [_figure(figure, results, pictures) for figure in e.figures]
    remarks = ["### Remarks", e.remarks] if e.remarks else []
    return "\n\n".join([f"## {e.title}", e.setting, _made(e, results), *figures, *remarks])


def _figure(figure: PaperFigure, results: Results, pictures: str) -> str:
    parts = [
        f"### {figure.figure}",
        f"![{figure.figure}]({pictures}/{figure.name}.png)",
        f"![{figure.figure}, defaults]({pictures}/{figure.name}_defaults.png)",
    ]
    numbers = figure.verdict(results).numbers
    parts += [numbers.caption, _table(numbers.header, numbers.rows, align="---:")]
    return "\n\n".join(parts)


def _made(e: Experiment, results: Results) -> str:
    made = results["made"]
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return (
        f"Made on {made['date']} in {made['seconds'] / 60:.1f} minutes of processor time on one "
        f"core, with Python {made['python']}, {versions}: "
        f"`python -m examples.austerity2014 {e.name}`."
    )
