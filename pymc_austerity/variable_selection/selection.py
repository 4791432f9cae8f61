"""Where coefficients and the indicators of those in the model are in a point."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.layout import Layout

__all__ = ["find_selection"]


def find_selection(
    layout: Layout, coefficients: str, inclusion: str
) -> tuple[slice, slice, NDArray[np.int64]]:
    """Entries of the coefficients, of their indicators, and all others.

    Parameters
    ----------
    layout : Layout
        Of the variables of a step method.
    coefficients, inclusion : str
        Names of two of them.

    Raises
    ------
    SettingError
        They are not there or do not belong together, or others are not real numbers.
    """
    blocks, kinds = {block.name: block for block in layout.blocks}, layout.n_categories
    for name in (coefficients, inclusion):
        if name not in blocks:
            raise SettingError(
                f"{name!r} is not among the variables of this step method "
                f"({', '.join(map(repr, blocks))}): ReversibleJumpProposal moves coefficients and "
                f"indicators together; give both with vars=[...]."
            )
    values, indicators = blocks[coefficients], blocks[inclusion]
    if values.shape != indicators.shape:
        raise SettingError(
            f"{inclusion!r} has shape {indicators.shape} and {coefficients!r} {values.shape}: give "
            "one indicator for each coefficient."
        )
    if kinds[values.entries].any() or not kinds[indicators.entries].all():
        raise SettingError(
            f"{coefficients!r} must be real and {inclusion!r} an integer variable of zeros and "
            "ones: name the coefficients first, then the indicators."
        )
    is_other = np.ones(layout.n_entries, dtype=bool)
    is_other[values.entries] = is_other[indicators.entries] = False
    others = np.flatnonzero(is_other)
    if kinds[others].any() or any(block.orthonormal for block in layout.blocks):
        raise SettingError(
            "ReversibleJumpProposal moves coefficients, indicators and real variables only: give "
            "the other variables to another step method in pm.sample(step=[...])."
        )
    return values.entries, indicators.entries, others
