"""The numerical guard where the model holds an example: other rows must fit in its place."""

from collections.abc import Iterable, Mapping

import numpy as np
import pytensor
from numpy.typing import NDArray

from pymc_austerity._pymc import TensorType, clone_replace
from pymc_austerity.errors import NotRowwiseError
from pymc_austerity.model.cut import array_of
from pymc_austerity.model.row_likelihood import RowLikelihood
from pymc_austerity.model.verify import (
    WITHOUT_CHECKS,
    Verified,
    finite_nearby,
    subsets_of,
    tolerance_of,
)

__all__ = ["verify_examples"]


def verify_examples(
    split: RowLikelihood,
    verified: Verified,
    point: Mapping[str, NDArray],
    windows: Iterable[Mapping[str, NDArray]],
    *,
    rng: np.random.Generator,
    n_points: int = 3,
) -> None:
    """Put other rows in the place of the example, and compare the model with its cut graph.

    What the cut concluded from the example, and should not have, shows in rows that differ.

    Parameters
    ----------
    split : RowLikelihood
        With recipes for its leaves.
    verified : Verified
        Its cut graph, which agrees with the model on the example.
    point : dict of str to array
        Values of the model's value variables: the first point of comparison.
    windows : iterable of dict of str to array
        Rows of the named data, each time as many as the example has.
    rng : numpy.random.Generator
        Source of the other points, and of the order of the rows.
    n_points : int
        Points to compare at.

    Raises
    ------
    NotRowwiseError
        The numbers differ.
    """
    assert split.recipes is not None
    inputs = {}
    for variable in split.examples.variables.values():
        array = array_of(variable)
        inputs[variable] = TensorType(array.dtype, shape=array.shape)()
    (full,) = clone_replace([split.full], inputs, rebuild_strict=False)
    function = pytensor.function(
        [*split.value_vars, *inputs.values()], full, mode=WITHOUT_CHECKS, on_unused_input="ignore"
    )
    start = [np.asarray(point[v.name], dtype=v.dtype) for v in split.value_vars]
    every = np.arange(split.n_in_model)
    nearby = (finite_nearby(verified.rows, start, every, rng) for _ in range(n_points - 1))
    points = [start, *nearby]
    for window in windows:
        block = split.recipes(window)
        for values in points:
            with np.errstate(all="ignore"):
                expected = function(*values, *[window[name] for name in split.examples.variables])
            usable = np.flatnonzero(np.isfinite(expected))
            if usable.size < 2:
                continue
            tolerance = tolerance_of(expected)
            for chosen in (usable[subset] for subset in subsets_of(usable.size, rng)):
                found = verified.on_block(values, [leaf[chosen] for leaf in block])
                if not np.allclose(found, expected[chosen], rtol=tolerance, atol=tolerance):
                    raise NotRowwiseError(
                        f"the log-likelihood of {', '.join(map(repr, split.subsampled))} gives "
                        "other numbers on rows of the sources than the model does with these "
                        "rows in the place of its example: use NUTS for this model."
                    )
