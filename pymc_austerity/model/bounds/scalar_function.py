"""The function of one row's predictors, prepared for interval arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    DimShuffle,
    ExtractDiag,
    Join,
    JoinDims,
    Reshape,
    Shape_i,
    SplitDims,
    Variable,
    clone_replace,
    computed_from,
    finite_in_tails,
    join_arguments,
    rewrite_graph,
    toposort,
)
from pymc_austerity.model.bounds.array_rules import operands
from pymc_austerity.model.bounds.identities import expand_logarithms, simplified
from pymc_austerity.model.compiling import AnyThread


@dataclass(frozen=True, eq=False)
class ScalarFunction:
    """Log-likelihood of rows as a function of their predictors.

    Attributes
    ----------
    predictors : tuple of k variables, shape (m,)
        Predictors of the rows.
    placeholders : tuple of variables
        Data of the rows.
    value : variable, shape (m,)
        Log-likelihoods, nats.
    constants : tuple of variables
        Parts of the graphs that depend on data alone and feed parts that depend on predictors.
    layout : tuple of variables
        The same for parts that depend on the number of rows alone.
    evaluate_constants, evaluate_layout : callable
        Their values, from the data of rows and from a number of rows.
    """

    predictors: tuple[Variable, ...]
    placeholders: tuple[Variable, ...]
    value: Variable
    constants: tuple[Variable, ...]
    layout: tuple[Variable, ...]
    evaluate_constants: Callable[..., list[NDArray]]
    evaluate_layout: Callable[..., list[NDArray]]

    @property
    def n_predictors(self) -> int:
        """Number of predictors, k."""
        return len(self.predictors)

    @cached_property
    def nodes(self) -> list:
        """Nodes to enclose, inputs first."""
        given = {*self.predictors, *self.constants, *self.layout}
        return _nodes_between(given, [self.value])

    @cached_property
    def indices(self) -> set[Variable]:
        """Constants that choose among entries, as categories do."""
        picking = [n for n in self.nodes if isinstance(n.op, ADVANCED_SUBTENSOR_OPS)]
        return {v for node in picking for v in node.inputs[1:]} & set(self.constants)

    @cached_property
    def has_rows_first(self) -> bool:
        """Whether rows are on axis 0 of all that depends on predictors."""
        return all(_leaves_first_axis(node) for node in self.nodes)

    def constants_of(self, arrays: Sequence[NDArray]) -> Mapping[Variable, NDArray]:
        """Values of the constants for the given rows."""
        return dict(zip(self.constants, self.evaluate_constants(*arrays), strict=True))

    def layout_of(self, n_rows: int) -> Mapping[Variable, NDArray]:
        """Values of the layout for a number of rows."""
        return dict(zip(self.layout, self.evaluate_layout(n_rows), strict=True))


def scalar_function(
    function: Variable, predictors: Sequence[Variable], placeholders: Sequence[Variable]
) -> ScalarFunction:
    """Prepare a function of predictors: rewrite it in stable forms.

    Parameters
    ----------
    function : variable, shape (m,)
        Log-likelihood of rows, -inf where parameters fail a check.
    predictors : sequence of k variables, shape (m,)
        Predictors that it is a function of.
    placeholders : sequence of variables
        Data of the rows, rows on axis 0.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> eta, y = pt.dvector("eta"), pt.dvector("y")
    >>> prepared = scalar_function(y * eta - pt.log(1 + pt.exp(eta)), [eta], [y])
    >>> sorted(str(node.op) for node in prepared.nodes)
    ['Mul', 'Softplus', 'Sub']
    """
    stable = finite_in_tails(*_rewritten([function], "merge", "stabilize"))
    graphs = simplified(_rewritten([stable], "ShapeOpt", "canonicalize", "stabilize"))
    graphs = expand_logarithms(graphs, predictors)
    graphs = _rewritten(graphs, "ShapeOpt", "canonicalize", "stabilize")
    n_rows = pt.lscalar("n_rows")
    graphs = _with_row_count(graphs, n_rows, [*predictors, *placeholders])
    constants, layout = _given_parts(graphs, predictors, placeholders, n_rows)
    compile_ = partial(pytensor.function, mode="FAST_COMPILE", on_unused_input="ignore")
    return ScalarFunction(
        tuple(predictors), tuple(placeholders), graphs[0],
        constants, layout,
        AnyThread(compile_(list(placeholders), constants)),
        AnyThread(compile_([n_rows], layout)),
    )  # fmt: skip


def _rewritten(graphs: Sequence[Variable], *include: str) -> list[Variable]:
    """Canonical and stable forms, but for log-sum-exp: its shift by the largest term has a kink."""
    left = ("local_log_sum_exp", "local_log_add_exp")
    return list(rewrite_graph(list(graphs), include=include, exclude=left))


def _with_row_count(
    graphs: Sequence[Variable], n_rows: Variable, vectors: Sequence[Variable]
) -> list[Variable]:
    """One variable in the place of the number of rows of every predictor and datum."""
    counts = {
        node.outputs[0]: n_rows
        for node in toposort(list(graphs))
        if isinstance(node.op, Shape_i) and node.op.i == 0 and node.inputs[0] in vectors
    }
    return list(clone_replace(list(graphs), counts, rebuild_strict=False))


def _given_parts(
    graphs: Sequence[Variable],
    predictors: Sequence[Variable],
    placeholders: Sequence[Variable],
    n_rows: Variable,
) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
    """What depends on data alone, and on the number of rows alone, as far down as possible."""
    enclosed, of_data, of_count = (
        computed_from(graphs, roots) for roots in (predictors, placeholders, [n_rows])
    )
    enclosed |= of_data & of_count
    nodes = [node for node in toposort(list(graphs)) if node.outputs[0] in enclosed]
    read = dict.fromkeys([*(v for node in nodes for v in operands(node)), *graphs])
    given = [v for v in read if v not in enclosed and hasattr(v.type, "dtype")]
    constants = tuple(v for v in given if v not in of_count)
    return constants, tuple(v for v in given if v in of_count)


def _leaves_first_axis(node: Any) -> bool:
    if isinstance(node.op, DimShuffle):
        return 0 not in node.op.new_order or node.op.new_order[0] == 0
    if isinstance(node.op, Join):
        return join_arguments(node)[0] != 0
    if isinstance(node.op, ExtractDiag):
        return 0 not in (node.op.axis1, node.op.axis2)
    return not isinstance(node.op, Reshape | JoinDims | SplitDims)


def _nodes_between(given: set[Variable], graphs: Sequence[Variable]) -> list:
    """Nodes from the given variables to the graphs, without the inside of log-sum-exp."""
    needed = set(graphs)
    nodes = []
    for node in reversed(list(toposort(list(graphs)))):
        if not needed.isdisjoint(node.outputs) and given.isdisjoint(node.outputs):
            needed.update(operands(node))
            nodes.append(node)
    return nodes[::-1]
