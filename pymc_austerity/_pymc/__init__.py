"""Every private name of PyMC and PyTensor, and the two generations of PyMC told apart.

PyMC promises stability for its top-level names only. What else is needed of it is imported here and
nowhere else, so that a new release is met in one place.
"""

import importlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pymc as pm
import pytensor.gradient
import pytensor.tensor.subtensor
from pymc.blocking import RaveledVars
from pymc.data import MinibatchOp
from pymc.distributions.distribution import SymbolicRandomVariable, support_point
from pymc.distributions.multivariate import ZeroSumNormalRV
from pymc.distributions.shape_utils import change_dist_size, implicit_size_from_params
from pymc.distributions.simulator import SimulatorRV
from pymc.distributions.transforms import CircularTransform, LogTransform, ZeroSumTransform
from pymc.initial_point import make_initial_point_fn
from pymc.logprob.utils import CheckParameterValue
from pymc.model.transform.basic import remove_minibatched_nodes
from pymc.model.transform.conditioning import remove_value_transforms
from pymc.pytensorf import join_nonshared_inputs, make_shared_replacements
from pymc.sampling.mcmc import assign_step_methods, instantiate_steppers
from pymc.stats.convergence import log_warnings, run_convergence_checks
from pymc.step_methods.arraystep import ArrayStepShared, PopulationArrayStepShared
from pymc.step_methods.compound import Competence, CompoundStep, StepMethodState
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiagAdapt
from pymc.step_methods.state import dataclass_state
from pymc.util import (
    RandomGeneratorState,
    check_dist_not_registered,
    get_random_generator,
    get_state_from_generator,
    random_generator_from_state,
)
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pymc.vartypes import continuous_types, discrete_types
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode, get_mode, predefined_modes
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import DisconnectedInputError, NullTypeGradError
from pytensor.graph.basic import Constant, Variable, equal_computations
from pytensor.graph.op import Op
from pytensor.graph.replace import _vectorize_node, clone_replace, vectorize_graph
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors, toposort
from pytensor.graph.utils import MethodNotDefined
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import (
    Add,
    BinaryScalarOp,
    Mul,
    Switch,
    upgrade_to_float,
)
from pytensor.scan.op import Scan
from pytensor.sparse.math import Dot as SparseDot
from pytensor.sparse.math import StructuredDot
from pytensor.sparse.type import SparseTensorType
from pytensor.tensor.basic import (
    Alloc,
    AllocEmpty,
    ARange,
    ExtractDiag,
    Join,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
    expand_dims,
    get_underlying_scalar_constant_value,
)
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.extra_ops import CumOp, Repeat, SearchsortedOp, squeeze
from pytensor.tensor.math import Argmax, Dot
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomGeneratorType, random_generator_type
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.special import LogSoftmax, Softmax
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import MakeSlice, NoneTypeT, SliceType

from pymc_austerity._pymc.sampling import (
    OWN_DRAWS,
    RECORDING,
    SAMPLING_LOOP,
    WORKER_LOOP,
    ChainsToCome,
    annotate_conversion,
    before_sampling,
    flat_steps,
    groups_of_chain,
    join_chains,
    set_first_mean,
    set_target_acceptance,
    starts_of_nuts,
    tune_steps_alone,
    with_group,
)

try:  # to come in PyMC: what pm.sample(sampler=...) takes
    from pymc.sampling.samplers import Sampler
except ImportError:
    Sampler = None

underivable = (NotImplementedError, NullTypeGradError, DisconnectedInputError, MethodNotDefined)
"""What PyTensor raises where it has no derivative."""


def grad(cost: Variable, wrt: Any, **options: Any) -> Any:
    """Gradient of a scalar, as ``pytensor.gradient.grad`` has it.

    Raises
    ------
    NullTypeGradError
        An operation has no derivative. PyTensor raises a TypeError if it meets that while it joins
        derivatives, such as those of a product.
    """
    try:
        return pytensor.gradient.grad(cost, wrt, **options)
    except TypeError as error:
        if "NullType" not in str(error):
            raise
        raise NullTypeGradError(str(error)) from error


def first_without_second_derivative(graph: Variable, roots: Iterable[Variable]) -> str:
    """Name of the first function of roots, entry by entry, that has none; empty if all have one."""
    moving = computed_from([graph], roots)
    for node in toposort([graph]):
        if not scalar_name(node) or node.outputs[0].dtype in discrete_types:
            continue
        inputs = [pytensor.tensor.scalar(dtype=variable.dtype) for variable in node.inputs]
        pairs = zip(inputs, node.inputs, strict=True)
        smooth = [x for x, v in pairs if v in moving and v.dtype not in discrete_types]
        try:
            first = grad(node.op(*inputs), smooth, disconnected_inputs="ignore")
            grad(sum(first), smooth, disconnected_inputs="ignore")
        except underivable:
            return scalar_name(node).lower()
    return ""


PYMC_GENERATION = int(pm.__version__.split(".")[0])
"""5 (with PyTensor 2) or 6 (with PyTensor 3)."""


# ------------------------------------------------------------------ graphs: the two generations

# PyTensor 2 has classes of their own for a single vector of indices; PyTensor 3 has not.
ADVANCED_SUBTENSOR_OPS: tuple[type, ...] = (
    AdvancedSubtensor,
    *filter(None, [getattr(pytensor.tensor.subtensor, "AdvancedSubtensor1", None)]),
)
ADVANCED_INC_SUBTENSOR_OPS: tuple[type, ...] = (
    AdvancedIncSubtensor,
    *filter(None, [getattr(pytensor.tensor.subtensor, "AdvancedIncSubtensor1", None)]),
)

# PyTensor 3 moved its linear algebra.
linear_algebra = importlib.import_module(
    "pytensor.tensor.linalg" if PYMC_GENERATION >= 6 else "pytensor.tensor.slinalg"
)
Cholesky, SolveTriangular = linear_algebra.Cholesky, linear_algebra.SolveTriangular


SPARSE_PRODUCTS = (SparseDot, StructuredDot)
"""Products of a sparse matrix with a dense one."""


@contextmanager
def without_traces() -> Iterator[None]:
    """Graphs are made without notes of where in Python each operation was made.

    PyTensor takes these notes for error messages, and they are a quarter of what graphs take.
    """
    with pytensor.config.change_flags(traceback__limit=0):
        yield


@contextmanager
def without_reports() -> Iterator[None]:
    """A rewrite that fails is not logged, where another graph takes the place of this one."""
    log = logging.getLogger("pytensor.graph.rewriting.basic")
    log.disabled, before = True, log.disabled
    try:
        yield
    finally:
        log.disabled = before


# The forward directional derivative was renamed.
pushforward = getattr(pytensor.gradient, "pushforward" if PYMC_GENERATION >= 6 else "Rop")


OF_BLAS = ("BlasOpt", "c_blas", "local_usmm")
"""Rewrites that look for a library of linear algebra, and warn where there is none."""

UNSUITABLE = ("local_adv_sub1_adv_inc_sub1", "local_zero_div", "local_elemwise_alloc", *OF_BLAS)
"""Those, and rewrites that log an error, or never end, in graphs that do not know their shapes."""


def stabilized(graph: Variable) -> Variable:
    """Rewrite ``log(sigmoid)`` and the like into stable forms, before derivatives are taken.

    PyMC's own preparation canonicalizes first, which hides ``log1p(-sigmoid(x))`` from the rule
    that knows it: its derivative is then NaN for large x.
    """
    stable = finite_in_tails(rewrite_graph(graph, include=("stabilize",)))
    return rewrite_graph(stable, include=("canonicalize", "stabilize"), exclude=UNSUITABLE)


def finite_in_tails(graph: Variable) -> Variable:
    """Rewrite logarithms of distribution functions: finite in tails, and with derivatives."""
    return rebuilt([graph], _of_distribution_function)[0]


def _of_distribution_function(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    match scalar_name(node):
        case "Log1p":
            return _complement_of_erf(inputs)
        case "Log":
            return _log_of_power(inputs)
        case "GammaIncC" if constant_entry(inputs[0]) == 1 and _is_nonnegative(inputs[1]):
            return [pytensor.tensor.exp(-inputs[1])]
        case "Floor" if _is_whole(inputs[0]) and inputs[0].dtype == node.outputs[0].dtype:
            return inputs
        case _:
            return None


def _log_of_power(inputs: list[Variable]) -> list[Variable] | None:
    """The logarithm of ``betainc(a, 1, x)``, which is ``x**a``."""
    inner = inputs[0].owner
    if scalar_name(inner) != "BetaInc" or constant_entry(inner.inputs[1]) != 1:
        return None
    return [inner.inputs[0] * pytensor.tensor.log(inner.inputs[2])]


def _is_whole(variable: Variable) -> bool:
    number = constant_entry(variable)
    return number is not None and float(number).is_integer()


def _is_nonnegative(variable: Variable) -> bool:
    node, kind = variable.owner, scalar_name(variable.owner)
    if kind in ("Exp", "Sqr"):
        return True
    if kind != "Switch" or scalar_name(node.inputs[0].owner) != "LT":
        return False
    compared, least = node.inputs[0].owner.inputs
    zeros = constant_entry(least) == 0 and constant_entry(node.inputs[1]) == 0
    return zeros and compared is node.inputs[2]


def _complement_of_erf(inputs: list[Variable]) -> list[Variable] | None:
    """``log1p(erf(x))`` as ``log(erfc(-x))``, and ``log1p(-erf(x))``: both are finite in tails."""
    inner, sign = inputs[0].owner, -1.0
    if scalar_name(inner) == "Neg":
        inner, sign = inner.inputs[0].owner, 1.0
    if scalar_name(inner) != "Erf":
        return None
    return [pytensor.tensor.log(pytensor.tensor.erfc(sign * inner.inputs[0]))]


def scalar_name(owner: Any) -> str:
    """Name of the scalar operation that a node applies, empty where there is none.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> scalar_name(pt.maximum(pt.dscalar(), 0.0).owner), scalar_name(None)
    ('Maximum', '')
    """
    scalar = getattr(getattr(owner, "op", None), "scalar_op", None)
    return "" if scalar is None else type(scalar).__name__.removeprefix("Scalar")


def inner_outputs(op: Any, replacements: Mapping[Variable, Variable]) -> list[Variable]:
    """Outputs of the inner graph of an Op with its inner inputs replaced.

    The inner graphs of PyTensor 3 are frozen and bind their inputs; those of PyTensor 2 are cloned.
    """
    if hasattr(op.fgraph, "bind"):
        inputs = op.fgraph.inputs
        return list(op.fgraph.bind({i: replacements.get(i, i) for i in inputs}))
    return list(clone_replace(list(op.inner_outputs), dict(replacements), rebuild_strict=False))


def join_arguments(node: Any) -> tuple[int, list[Variable]]:
    """Axis and joined variables of a Join; the axis is an input in PyTensor 2, a property in 3."""
    if hasattr(node.op, "axis"):
        return int(node.op.axis), list(node.inputs)
    axis, *joined = node.inputs
    return int(axis.data), joined


def jit_function(function: Any) -> Callable[..., Any] | None:
    """What numba made of a compiled function, for other code that numba compiles.

    None where something else compiled it, or where it reads shared variables, which are no
    arguments of it.
    """
    if any(given.implicit for given in function.maker.inputs):
        return None
    return getattr(function.vm, "jit_fn", None)


def indices_of(node: Any) -> list[Any]:
    """Indices of a subtensor, or of setting or adding to one: slices, variables or None."""
    n_operands = 2 if hasattr(node.op, "set_instead_of_inc") else 1
    indices = indices_from_subtensor(node.inputs[n_operands:], getattr(node.op, "idx_list", None))
    return [_as_slice(index) if is_slice(index) else index for index in indices]


def batched_index(node: Any) -> Variable | None:
    """A Blockwise read by arrays of indices, as one read by arrays with more axes.

    PyTensor makes it where it vectorizes ``x[i]`` over ``i``. None for anything else, and where
    ``x`` has batch axes too.
    """
    if not (isinstance(node.op, Blockwise) and isinstance(node.op.core_op, ADVANCED_SUBTENSOR_OPS)):
        return None
    operand, n_batch = node.inputs[0], node.op.batch_ndim(node)
    idx_list = getattr(node.op.core_op, "idx_list", None)
    indices = indices_from_subtensor(node.inputs[1:], idx_list)
    if any(is_slice(i) or is_none(i) or i.type.dtype == "bool" for i in indices):
        return None
    if not all(operand.type.broadcastable[:n_batch]):
        return None
    ndim = max(index.type.ndim for index in indices)
    aligned = [
        expand_dims(index, tuple(range(n_batch, n_batch + ndim - index.type.ndim)))
        for index in indices
    ]
    return squeeze(operand, tuple(range(n_batch)))[tuple(aligned)]


def is_slice(index: Any) -> bool:
    """Tell whether an index is a slice, whatever stands for it in the graph."""
    return isinstance(index, slice) or (
        isinstance(index, Variable) and isinstance(index.type, SliceType)
    )


def is_none(index: Any) -> bool:
    """Tell whether an index, or a bound of a slice, is None, whatever stands for it."""
    return index is None or (isinstance(index, Variable) and isinstance(index.type, NoneTypeT))


def _as_slice(index: Any) -> Any:
    if isinstance(index, Constant):
        return index.data
    if getattr(index, "owner", None) is not None and isinstance(index.owner.op, MakeSlice):
        return slice(*[None if is_none(bound) else bound for bound in index.owner.inputs])
    return index


def is_dot(node: Any) -> bool:
    """Tell whether a node is a product of vectors or matrices."""
    op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    return isinstance(op, Dot)


def constant_entry(v: Any) -> Any:
    """The number that all entries of a variable are; None where it is not known."""
    try:
        return np.asarray(get_underlying_scalar_constant_value(v)).item()
    except NotScalarConstantError:
        return None


def rebuilt(graphs: Sequence[Variable], rule: Callable[[Any, list], list | None]) -> list[Variable]:
    """Build graphs anew from their inputs, with other outputs for some nodes.

    Parameters
    ----------
    graphs : sequence of variables
    rule : callable
        ``rule(node, new_inputs)``: outputs that take the place of the node's, or None.
    """
    new: dict[Variable, Variable] = {}
    for node in toposort(list(graphs)):
        inputs = [new.get(i, i) for i in node.inputs]
        outputs = rule(node, inputs)
        if outputs is None and any(i in new for i in node.inputs):
            outputs = node.clone_with_new_inputs(inputs, strict=False).outputs
        if outputs is not None:
            new.update(zip(node.outputs, outputs, strict=True))
    return [new.get(graph, graph) for graph in graphs]


def computed_from(
    graphs: Sequence[Variable], roots: Iterable[Variable], *, through_shapes: bool = True
) -> set[Variable]:
    """Roots, and those variables of graphs that are computed from some of them."""
    found = set(roots)
    for node in toposort(list(graphs)):
        is_shape = isinstance(node.op, Shape | Shape_i)
        if not found.isdisjoint(node.inputs) and (through_shapes or not is_shape):
            found.update(node.outputs)
    return found


def vectorized_node(node: Any, inputs: Sequence[Variable]) -> list[Variable]:
    """Outputs of a node with more axes in front of those of its inputs."""
    made = _vectorize_node(node.op, node, *inputs)
    return list(made.outputs if hasattr(made, "outputs") else made)


def run_node(node: Any, inputs: Sequence[Any]) -> list[Any]:
    """Run one application of an Op in Python, on these values of its inputs."""
    if isinstance(node.op, OpFromGraph):
        arguments = dict(zip(node.op.inner_inputs, node.inputs, strict=True))
        values = dict(zip(node.inputs, inputs, strict=True))
        outputs = inner_outputs(node.op, arguments)
        for inner in toposort(outputs, blockers=list(values)):
            given = [i.data if isinstance(i, Constant) else values[i] for i in inner.inputs]
            values.update(zip(inner.outputs, run_node(inner, given), strict=True))
        return [o.data if isinstance(o, Constant) else values[o] for o in outputs]
    storage = {variable: [value] for variable, value in zip(node.inputs, inputs, strict=True)}
    storage |= {variable: [None] for variable in node.outputs}
    computed = {variable: [variable in node.inputs] for variable in storage}
    node.op.make_thunk(node, storage, computed, [], impl="py")()
    return [storage[variable][0] for variable in node.outputs]


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes of an operation as numbers from zero on; None means all of them."""
    return tuple(range(ndim)) if axis is None else tuple(int(a) % ndim for a in np.atleast_1d(axis))


def sorted_axis(node: Any) -> int | None:
    """Axis of a sort; an input in PyTensor 2, a property in 3; None for the raveled array."""
    axis = node.inputs[1].data if len(node.inputs) > 1 else node.op.axis
    return None if axis is None else int(axis)


# ------------------------------------------------------------------ graphs: xtensor (pymc.dims)


def lower_xtensor(outputs: Sequence[Variable]) -> list[Variable]:
    """Express labeled operations by those of PyTensor's tensors.

    Whoever has not imported the experimental module cannot have used it; it warns when imported.
    """
    if "pytensor.xtensor" not in sys.modules:
        return list(outputs)
    return list(rewrite_graph(list(outputs), include=("lower_xtensor",)))


def is_relabelling(op: Any) -> bool:
    """Tell whether an Op adds or removes the labels of xtensor and nothing else."""
    if "pytensor.xtensor" not in sys.modules:
        return False
    from pytensor.xtensor.basic import XTypeCastOp

    return isinstance(op, XTypeCastOp)
