"""What an experiment is: something to run, and figures of the paper to compare it with.

A new experiment is a module of this package with a constant ``EXPERIMENT``, and its name in
`examples.austerity2014.registry`. The rest (command line, saving, table, README, page) is shared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from examples.austerity2014.parts import Parts

Results = dict[str, Any]
"""What a run found: numbers, texts, lists and dictionaries of them, as in JSON."""


@dataclass(frozen=True)
class NumberTable:
    """Numbers behind a verdict, as text.

    Attributes
    ----------
    caption : str
        What the numbers are means of, and their units.
    header : tuple of str
        Names of the columns.
    rows : tuple of tuple of str
        Each as long as the header.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Verdict(NamedTuple):
    """How our figure compares with the paper's.

    Attributes
    ----------
    agrees : bool
        Whether our results support the paper's claim.
    ours : str
        What we found, in one or two short sentences, with the numbers that decide.
    numbers : NumberTable
        Everything that was measured.
    """

    agrees: bool
    ours: str
    numbers: NumberTable


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper.

    Attributes
    ----------
    name : str
        Name of the picture's file, without ``.png``.
    figure : str
        Where it is in the paper, such as "ICML figure 2".
    claim : str
        What the paper says about it, in one sentence.
    draw : callable
        Draws our version of it from the results.
    beside : callable
        Draws what the step method achieves with its defaults and the same budget.
    verdict : callable
        Says, from the results, whether ours agrees.
    """

    name: str
    figure: str
    claim: str
    draw: Callable[[Results], "Figure"]
    beside: Callable[[Results], "Figure"]
    verdict: Callable[[Results], Verdict]


class Run(Protocol):
    """Runs an experiment."""

    def __call__(self, *, quick: bool, data: str | None, parts: "Parts") -> Results:
        """Run.

        Parameters
        ----------
        quick : bool
            Only check that everything works: a few seconds, meaningless results.
        data : str or None
            Folder with data sets, for `examples.shared.datasets.load`.
        parts : Parts
            What is finished, and the source of all randomness.
        """
        ...


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, which may have several figures.

    Attributes
    ----------
    name : str
        Name on the command line and of the file of its results.
    title : str
        A few words.
    setting : str
        What is sampled and how, and where ours differs from the paper's; a Markdown list.
    run : callable
        Runs it and returns what was found.
    figures : tuple of PaperFigure
        What to draw from that.
    remarks : str
        What explains agreement or disagreement, in Markdown, below the figures.
    """

    name: str
    title: str
    setting: str
    run: Run
    figures: tuple[PaperFigure, ...]
    remarks: str = ""
