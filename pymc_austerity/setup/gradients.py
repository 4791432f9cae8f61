"""Gradients from the rows of a step method, for the proposals that use them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import discrete_types, underivable
from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.exact import PoissonSampling
from pymc_austerity.deciding.sampling import StratifiedSampling, row_draw
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import SettingError
from pymc_austerity.model import compile_gradient
from pymc_austerity.proposals import Proposal
from pymc_austerity.rows import (
    LARGEST_BLOCK,
    AllRows,
    Block,
    RowDraw,
    RowSource,
)
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.target import Target


@dataclass(frozen=True, eq=False)
class RowGradients:
    r"""Gradient of the log-posterior from mini-batches of rows.

    Parameters
    ----------
    function : callable
        See `pymc_austerity.model.compile_gradient`.
    rows : RowDraw
        Way of drawing rows.
    anchor : Anchor or None
        Where the gradients of the rows are expanded; None if they are not.
    n_rows, batch_size : int
        Number of all rows, and of rows of a mini-batch.
    n_leaves : int
        Arrays of a block that the function takes; the following ones are for decisions.
    decisions : {"metropolis", "barker", "poisson", "none"}
        Acceptance rule of proposals.
    dtype : numpy.dtype
        Type of the points.
    """

    function: Callable[..., NDArray[np.float64]]
    rows: RowDraw
    anchor: Anchor | None
    n_rows: int
    batch_size: int
    n_leaves: int
    decisions: Literal["metropolis", "barker", "poisson", "none"]
    dtype: np.dtype

    def draw(self, rng: np.random.Generator) -> Callable[[NDArray], NDArray[np.float64]]:
        """Gradient from a new mini-batch, a function of the point, nats per unit."""
        blocks = self.rows.begin(rng).read(self.batch_size)
        return partial(self._of, [block[: self.n_leaves] for block in blocks])

    def _of(self, blocks: Sequence[Block], point: NDArray) -> NDArray[np.float64]:
        """Gradient at a point from some rows, shape (d,)."""
        anchor = self.anchor
        about = point if anchor is None else anchor.point.astype(self.dtype, copy=False)
        row_weight = np.asarray(self.n_rows / self.batch_size, self.dtype)
        prior_weight = np.asarray(1.0 / len(blocks), self.dtype)
        of_blocks = (self.function(point, about, row_weight, prior_weight, *b) for b in blocks)
        gradient = reduce(np.add, of_blocks)
        return gradient if anchor is None else gradient + _expansion(anchor, point)


def _expansion(anchor: Anchor, point: NDArray) -> NDArray[np.float64]:
    """Gradient of the expansion of all rows about the anchor, up to the second order."""
    if anchor.order == 1:
        return anchor.gradient
    expansion: NDArray[np.float64] = anchor.gradient + anchor.hessian.dot(point - anchor.point)
    return expansion


@dataclass(frozen=True)
class IndependentRows:
    """Rows drawn independently of each other, from a source in any order.

    A row may be drawn twice: the mean is still unbiased, and drawing costs less than for distinct
    rows. A test depends on how many rows are left; a gradient does not.

    Parameters
    ----------
    source : RowSource
        Such as rows that are stored by stratum.
    """

    source: RowSource

    def begin(self, rng: np.random.Generator) -> "IndependentRows._Stream":
        """Start to draw."""
        return self._Stream(self.source, rng)

    class _Stream(NamedTuple):
        source: RowSource
        rng: np.random.Generator

        def read(self, n_rows: int) -> Iterator[Block]:
            for start in range(0, n_rows, LARGEST_BLOCK):
                size = min(LARGEST_BLOCK, n_rows - start)
                yield self.source.take(self.rng.integers(self.source.n_rows, size=size))


def with_gradients(
    proposal: Proposal[Any], problem: Problem, target: Target, settings: Settings
) -> Proposal[Any]:
    """Give a proposal the gradients that it needs, if any.

    Raises
    ------
    SettingError
        The variables are not continuous, the log-density has no gradient, or control variates
        are requested but decisions have none.
    """
    if not hasattr(proposal, "with_gradients"):
        return proposal
    asking: Any = proposal
    name, n_rows = type(proposal).__name__, problem.likelihood.n_rows
    _refuse_discrete(name, problem)
    batch_size = n_rows if asking.batch_size == "all" else min(asking.batch_size, n_rows)
    anchor = None if batch_size == n_rows else _anchor(name, asking, target)
    try:
        function = compile_gradient(
            problem.parts,
            order=0 if anchor is None else min(anchor.order, 2),
            compile_kwargs=problem.compile_kwargs,
        )
    except underivable as error:
        raise SettingError(
            f"{name} cannot be used because an operation of the model has no gradient: use "
            "RandomWalkProposal() instead."
        ) from error
    start = problem.start
    gradients = RowGradients(
        function,
        _draw(target, settings, everything=batch_size == n_rows),
        anchor,
        n_rows,
        batch_size,
        len(problem.likelihood.leaves),
        settings.description.acceptance,
        start.dtype,
    )
    gradients.draw(np.random.default_rng(0))(start)  # nothing is left to compile
    return asking.with_gradients(gradients)


def _refuse_discrete(name: str, problem: Problem) -> None:
    names = problem.model.values_to_rvs
    discrete = [names[v].name for v in problem.variables if v.dtype in discrete_types]
    if discrete:
        raise SettingError(
            f"{name} follows gradients, and {', '.join(map(repr, discrete))} is discrete: leave it "
            "to another step method with AusterityMH(vars=[...])."
        )


def _anchor(name: str, proposal: Any, target: Target) -> Anchor | None:
    if proposal.control_variates is True and target.anchor is None:
        raise SettingError(
            f"{name}(control_variates=True) needs the control variates of the step method, which "
            "has none: use AusterityMH with control variates, or control_variates='auto' here."
        )
    return target.anchor if proposal.control_variates else None


def _draw(target: Target, settings: Settings, *, everything: bool) -> RowDraw:
    if everything:
        return AllRows(target.source)
    if isinstance(target.sampling, StratifiedSampling | PoissonSampling):
        return IndependentRows(target.source)
    return row_draw(target.source, settings)
