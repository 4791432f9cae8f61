"""Random variables: rows are drawn by themselves."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import RandomVariable, Variable, random_generator_type
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut, in_words
from pymc_austerity.model.cut.registry import rows_of

ONE_BY_ONE = "generator of rows of "
"""How the names of generators begin with which rows are drawn one by one."""


@rows_of.register(RandomVariable)
def drawn(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """Rows of a sample are a sample with rows of the parameters.

    Its generator is named after the operation, so that one that was cut twice can be found.
    """
    node, rows, n_batch = wanted.node, wanted.selection.rows, wanted.ndim - op.ndim_supp
    if wanted.axis >= n_batch:
        raise CannotCut(f"{in_words(op)} draws all rows together")
    if rows is not None:
        if np.array_equal(rows, np.arange(cut.known.shape(wanted.output)[wanted.axis])):
            return cut.take(wanted.output, wanted.axis)
        if np.unique(rows).size < rows.size:
            raise CannotCut(f"several rows read the same draw of {in_words(op)}")
    parameters = [
        cut.take_or_keep(
            parameter, wanted.axis - n_batch + parameter.type.ndim - ndim, wanted.selection
        )
        for parameter, ndim in zip(op.dist_params(node), op.ndims_params, strict=True)
    ]
    lengths: list[Any] = list(cut.known.shape(wanted.output)[:n_batch])
    lengths[wanted.axis] = cut.batch_length
    size = pt.stack([pt.as_tensor(length, dtype="int64") for length in lengths])
    generator = random_generator_type(f"{ONE_BY_ONE}{id(node)}")
    return op.make_node(generator, size, *parameters).outputs[wanted.index]
