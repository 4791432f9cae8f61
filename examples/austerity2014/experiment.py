"""What an experiment is: something to run, and figures of the paper to hold it against.

A new experiment is a module of this package with a constant ``EXPERIMENT``, and its name in
`examples.austerity2014.registry`. The rest (command line, saving, table, README, page) is shared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from examples.austerity2014.parts import Parts

__all__ = ["Experiment", "PaperFigure", "Results", "Run", "Verdict"]

Results = dict[str, Any]
"""What a run found: numbers, texts, lists and dictionaries of them, as JSON can hold them."""


class Verdict(NamedTuple):
    """How our figure compares with the paper's.

    Attributes
    ----------
    agrees : bool
        Whether what we found supports the paper's claim.
    ours : str
        What we found, a sentence or two, with numbers computed from the results.
    """

    agrees: bool
    ours: str


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
        Our version of it, from the results.
    beside : callable
        The same budget spent by the step method as it comes, from the results.
    verdict : callable
        Whether ours agrees, from the results.
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
            Only see that everything works: a few seconds, whatever the results are worth.
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
        What is sampled and how, and where ours differs from the paper's; some sentences.
    run : callable
        Run it and return what was found.
    figures : tuple of PaperFigure
        What to draw from that.
    remarks : str
        What explains agreement or disagreement, below the figures.
    """

    name: str
    title: str
    setting: str
    run: Run
    figures: tuple[PaperFigure, ...]
    remarks: str = ""
