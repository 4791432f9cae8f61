"""Sequential tests where rows are elsewhere: the rows are stored once in sampling order."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    Influence,
    LargestScores,
    differences_of_all,
)
from pymc_austerity.deciding.sampling import Sampling, StratifiedSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.model import OneAtATime
from pymc_austerity.rows import (
    ArrayRows,
    Block,
    StoredRows,
    StratifiedWindows,
    blocks_of,
)
from pymc_austerity.setup.leaves import NumberedBlocks
from pymc_austerity.setup.plans import About
from pymc_austerity.setup.source_rows import Labeled, SourceRows
from pymc_austerity.setup.strata import most_first_rows, words_on_strata
from pymc_austerity.setup.strata_of_sample import first_look_of_sample, thresholds_of_sample

__all__ = ["StoredSampling", "rows_of_first_look", "stored_in_strata"]

_PAIRS_TO_CHECK = 4


class StoredSampling(NamedTuple):
    """Rows in sampling order, and how they are sampled.

    Attributes
    ----------
    source : StoredRows
        All rows with their derivatives at the anchor.
    sampling : Sampling
    words : str
        How rows are sampled, as a sentence without its full stop.
    """

    source: StoredRows
    sampling: Sampling
    words: str


def stored_in_strata(about: About) -> StoredSampling:
    """Measure the influence of all rows in one pass, and store them by influence in another.

    Raises
    ------
    StorageError
        There is no room for the rows, or they were changed while they were read.
    """
    problem, residuals, settings = about.problem, about.residuals, about.settings
    rows, rng, function = problem.prepared.from_sources, problem.prepared.rng, residuals.function
    assert rows is not None
    influence, some, differences = _on_sample(rows, about)
    largest = _largest_of_all(rows, residuals.block_of, influence, some, settings)
    known = thresholds_of_sample(largest, some, differences[:_PAIRS_TO_CHECK], settings, rng)
    n_strata, highest = known.ascending.size + 1, float(largest.falling[0])
    squares = np.zeros(n_strata)

    scores_of = OneAtATime(influence)

    def scored(_: int, block: Block) -> tuple[NDArray[np.float64], Block]:
        data = residuals.block_of(block)
        return scores_of(data), data

    def labeled() -> Iterator[Labeled]:
        for scores, block in rows.mapped_with_numbers(scored, here=True):
            labels = known.labels(scores)
            squares[:] += np.bincount(labels, np.minimum(scores, highest) ** 2, n_strata)
            yield labels, block

    shares = np.bincount(known.labels(some), minlength=n_strata) / some.size
    about.say("storing the rows in the order of sampling")
    source, sizes = rows.stored(labeled(), shares, rng)
    strata = known.strata(sizes)
    deviations = np.sqrt(squares[sizes > 0] / strata.sizes)
    sampling = StratifiedSampling(function, StratifiedWindows(source, strata), deviations)
    n_take_all = int(sizes[0]) if known.n_take_all else 0
    return StoredSampling(source, sampling, words_on_strata(strata, n_take_all))


def _largest_of_all(
    rows: SourceRows,
    block_of: Callable[[Block], Block],
    influence: Influence,
    some: NDArray[np.float64],
    settings: Settings,
) -> LargestScores:
    """The largest scores of all rows; one pass. `some` are the scores of the sample."""
    most, scores_of = most_first_rows(settings, rows.n_rows) + 1, OneAtATime(influence)

    def of_piece(blocks: NumberedBlocks) -> LargestScores:
        own = LargestScores(most)
        for _, block in blocks:
            own.add(scores_of(block_of(block)))
        return own

    largest = LargestScores(most)
    arguments = ("influence", influence.pairs, influence.weights, some, most)
    for own in rows.in_pieces(of_piece, arguments=arguments):
        largest.join(own)
    return largest


def rows_of_first_look(about: About) -> int:
    """Rows of the first look of a sequential test, estimated on a sample of the rows."""
    rows = about.problem.prepared.from_sources
    assert rows is not None
    return first_look_of_sample(_on_sample(rows, about)[1], rows.n_rows, about.settings)


def _on_sample(
    rows: SourceRows, about: About
) -> tuple[Influence, NDArray[np.float64], list[NDArray[np.float64]]]:
    """The influence function, the scores of a sample, and its differences between the pairs."""
    assert rows.sample is not None
    residuals, pairs = about.residuals, about.pilot_pairs()
    function = residuals.function
    sample = ArrayRows(residuals.block_of(rows.sample.window(0, rows.sample.n_rows)))
    differences = [differences_of_all(function, *pair, sample) for pair in pairs]
    influence = Influence.by_sample(function, pairs, differences)
    scores = np.concatenate([influence(block) for block in blocks_of(sample)])
    return influence, scores, differences
