"""Linear predictors of all rows in whitened coordinates about the anchor."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.model import DesignFunction
from pymc_austerity.rows import ArrayRows, blocks_of


class WhitenedRows(NamedTuple):
    r"""Predictors :math:`\eta_i^* + Z_i u` of the rows, with :math:`\theta = \theta^* + R u`.

    Attributes
    ----------
    center : float array, shape (N, k)
        Predictors at the anchor.
    gram : float array, shape (N, k, k)
        :math:`Z_i Z_i'`.
    gradients : callable
        Returns the :math:`Z_i` of rows with one predictor, float array, shape (N, d).
    """

    center: NDArray[np.float64]
    gram: NDArray[np.float64]
    gradients: Callable[[], NDArray[np.float64]]

    @property
    def is_single(self) -> bool:
        """Whether rows have one predictor."""
        return self.center.shape[1] == 1


def whitened_rows(
    designs: DesignFunction, arrays: Sequence[NDArray], anchor: Anchor
) -> WhitenedRows:
    """Evaluate the predictors of all rows, block by block.

    Parameters
    ----------
    designs : callable
        Evaluates the predictors; see `pymc_austerity.model.design_function`.
    arrays : sequence of arrays, each of shape (N, ...)
        Data of the rows.
    anchor : Anchor
    """
    source = ArrayRows(arrays)
    blocks = [whitened_block(designs, block, anchor)[:2] for block in blocks_of(source)]
    center, gram = (np.concatenate(parts) for parts in zip(*blocks, strict=True))

    def gradients() -> NDArray[np.float64]:
        each = (designs(block)[0] for block in blocks_of(source))
        return np.concatenate([design.product(anchor.root) for design in each])

    return WhitenedRows(center, gram, gradients)


def whitened_block(
    designs: DesignFunction, block: Sequence[NDArray], anchor: Anchor
) -> WhitenedRows:
    """The same for a block of rows, small enough that their gradients can be kept."""
    on_rows = designs(block)
    center = np.stack([design.eta(anchor.point) for design in on_rows], axis=1)
    each = [design.product(anchor.root) for design in on_rows]
    if len(each) == 1:
        (only,) = each
        return WhitenedRows(center, np.einsum("ij,ij->i", only, only)[:, None, None], lambda: only)
    z = np.stack(each, axis=1)
    return WhitenedRows(center, np.matmul(z, z.transpose(0, 2, 1)), lambda: each[0])
