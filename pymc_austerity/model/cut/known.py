"""Properties of a graph before any rule is applied: dependence, values, shapes, examples."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Constant,
    DimShuffle,
    Mode,
    Reshape,
    Shape,
    Shape_i,
    SharedVariable,
    SpecifyShape,
    Subtensor,
    TensorType,
    Variable,
    ancestors,
    clone_replace,
    is_relabelling,
    rebuilt,
    scalar_name,
    toposort,
)
from pymc_austerity.arguments import choice_among
from pymc_austerity.errors import SettingError
from pymc_austerity.model.compiling import AS_WRITTEN


@dataclass(frozen=True, eq=False)
class Examples:
    """Data of a model that represent more rows than they have.

    Their values must not matter, because other rows do not share them.

    Attributes
    ----------
    variables : dict of str to variable
        What holds the example rows, by the name that the user gave.
    """

    variables: Mapping[str, Variable]

    def __bool__(self) -> bool:
        return bool(self.variables)

    def name_of(self, variable: Variable) -> str | None:
        """Name of the data that a root of a graph, or of a copy of it, holds; or None."""
        array = array_of(variable)
        if not isinstance(array, np.ndarray):
            return None
        for name, own in self.variables.items():
            if variable is own or is_same_memory(array, array_of(own)):
                return name
        return None

    @classmethod
    def named(cls, model: pm.Model, names: Sequence[str]) -> "Examples":
        """Find the data of some names.

        Raises
        ------
        SettingError
            Names the one that is neither a ``pm.Data`` nor an observed array.
        """
        found = {name: _holder(model, name) for name in names}
        for (one, variable), (other, same) in combinations(found.items(), 2):
            if variable is same:
                raise SettingError(
                    f"data= names both {one!r} and {other!r}, which are the same data: leave one "
                    "of them out."
                )
        return cls(found)


NO_EXAMPLES = Examples({})
"""All data are what they are."""


def array_of(variable: Any) -> Any:
    """What a shared variable or a constant holds, None for others."""
    if isinstance(variable, SharedVariable):
        return variable.get_value(borrow=True)
    return variable.data if isinstance(variable, Constant) else None


def _holder(model: pm.Model, name: str) -> Variable:
    variable = model.named_vars.get(name)
    possible = [v.name for v in (*model.data_vars, *model.observed_RVs)]
    if variable is None:
        raise SettingError(
            f"data= names {name!r}, which the model does not have: {choice_among(name, possible)}."
        )
    holder = variable
    if variable in model.observed_RVs:
        holder = behind(model.rvs_to_values[variable], _is_renamed)
    if np.ndim(array_of(holder)) == 0 or name not in possible:
        raise SettingError(
            f"data= names {name!r}, which is neither a pm.Data with rows nor observed as it is: "
            f"{choice_among('', possible)}."
        )
    return holder


def _is_renamed(variable: Variable) -> bool:
    """Whether it is its input with other labels or another dtype."""
    return is_cast(variable) or (variable.owner is not None and is_relabelling(variable.owner.op))


def is_same_memory(one: NDArray, other: NDArray) -> bool:
    """Whether two arrays, both of which are kept, are views of the same numbers."""
    first, second = (
        (a.__array_interface__["data"][0], a.shape, a.strides, a.dtype) for a in (one, other)
    )
    return first == second


def jittered(values: Sequence[NDArray], scale: float, rng: np.random.Generator) -> list[NDArray]:
    """Add normal noise of a scale to every array of floats; whole numbers stay as they are."""
    return [
        (value + scale * rng.normal(size=value.shape)).astype(value.dtype)
        if value.dtype.kind == "f"
        else value
        for value in values
    ]


# Unlike values, shapes need rewrites: without them the shape of a product is found by computing the
# product.
OF_SHAPES = Mode(linker="py", optimizer="fast_compile")


def is_view(variable: Variable) -> bool:
    """Tell whether a variable is a view of its first input."""
    if variable.owner is None:
        return False
    op = variable.owner.op
    return isinstance(op, DimShuffle | Reshape | SpecifyShape | Subtensor) or is_relabelling(op)


def has_axes_moved(variable: Variable) -> bool:
    """Tell whether a variable is its input with axes in another order, added or dropped."""
    return variable.owner is not None and isinstance(variable.owner.op, DimShuffle)


def behind(variable: Variable, passes: Callable[[Variable], bool]) -> Variable:
    """Return the variable behind operations of a kind on it, one after the other."""
    while passes(variable):
        variable = variable.owner.inputs[0]
    return variable


def without_views(variable: Variable) -> Variable:
    """Return the variable behind a view, or behind a view of a view."""
    return behind(variable, is_view)


def is_cast(variable: Variable) -> bool:
    """Tell whether a variable is its input with another dtype."""
    return scalar_name(variable.owner) == "Cast"


def static_data(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace shared variables by twins that have their shape in their type, and the same memory.

    Most shapes of the graph are then known without evaluating anything.
    """
    shared = [v for v in ancestors(outputs) if isinstance(v, SharedVariable)]
    twins = {}
    for variable in shared:
        array = variable.get_value(borrow=True)
        if isinstance(variable.type, TensorType) and isinstance(array, np.ndarray):
            twins[variable] = pytensor.shared(
                array, name=variable.name, borrow=True, shape=array.shape
            )
    return list(clone_replace(list(outputs), twins, rebuild_strict=False))


class Known:
    """Dependence on the parameters, values of variables that do not depend on them, and shapes.

    Parameters
    ----------
    parameters : sequence of variables
        Value variables of the model.
    point : mapping of str to array
        Their values, by name; shapes are read off it.
    examples : Examples
        Data of which only some rows are there. What is computed from them depends on the rest as
        on a parameter: it has no value yet.
    """

    def __init__(
        self,
        parameters: Sequence[Variable],
        point: Mapping[str, NDArray],
        examples: Examples = NO_EXAMPLES,
    ) -> None:
        self.parameters = tuple(parameters)
        self.examples = examples
        self._parameter_set = frozenset(parameters)
        self._point = point
        self._depends: dict[Variable, bool] = {}
        self._reads: dict[Variable, bool] = {}
        self._values: dict[Variable, Any] = {}
        self._shapes: dict[Variable, tuple[int, ...]] = {}

    def start(self, parameter: Variable) -> NDArray:
        """Value of a parameter at which shapes are read."""
        return np.asarray(self._point[parameter.name])

    # ------------------------------------------------------------------ dependence

    def parameter(self, variable: Variable) -> Variable | None:
        """Return the value variable that a variable is, with or without labels, or None."""
        if variable in self._parameter_set:
            return variable
        if variable.owner is not None and is_relabelling(variable.owner.op):
            return self.parameter(variable.owner.inputs[0])
        return None

    def depends(self, variable: Variable) -> bool:
        """Tell whether a value depends on a parameter or an example; a shape does not."""
        return self._is_from(variable, self._is_root, self._depends)

    @property
    def roots(self) -> str:
        """What values depend on, for the end of a sentence."""
        return "parameters or on rows in sources" if self.examples else "parameters"

    def reads_examples(self, variable: Variable) -> bool:
        """Tell whether a value depends on data of which the model has only some rows."""
        return bool(self.examples) and self._is_from(variable, self._is_example, self._reads)

    def _is_root(self, variable: Variable) -> bool:
        return variable in self._parameter_set or self._is_example(variable)

    def _is_example(self, variable: Variable) -> bool:
        return variable.owner is None and self.examples.name_of(variable) is not None

    @staticmethod
    def _is_from(
        variable: Variable, is_root: Callable[[Variable], bool], known: dict[Variable, bool]
    ) -> bool:
        if variable in known:
            return known[variable]

        def holds(v: Variable) -> bool:
            if v not in known:
                known[v] = is_root(v)
            return known[v]

        for node in toposort([variable], blockers=list(known)):
            is_from = not isinstance(node.op, Shape | Shape_i) and any(map(holds, node.inputs))
            known.update(dict.fromkeys(node.outputs, is_from))
        return holds(variable)

    def dependent(self, outputs: Iterable[Variable]) -> list[Variable]:
        """All variables that outputs are computed from whose value depends on a parameter."""
        found: dict[Variable, None] = {}
        stack = [v for v in outputs if self.depends(v)]
        while stack:
            variable = stack.pop()
            if variable not in found:
                found[variable] = None
                if variable.owner is not None:
                    stack.extend(i for i in variable.owner.inputs if self.depends(i))
        return list(found)

    # ------------------------------------------------------------------ shapes

    def learn_shapes(self, outputs: Iterable[Variable]) -> None:
        """Find all shapes that types do not tell, in one function."""
        unknown = [
            v
            for v in self.dependent(outputs)
            if isinstance(v.type, TensorType) and None in v.type.shape and v not in self._shapes
        ]
        if unknown:
            self._evaluate_shapes(unknown)

    def _evaluate_shapes(self, variables: list[Variable]) -> None:
        shapes = self._evaluate([v.shape for v in variables], OF_SHAPES)
        self._shapes.update((v, tuple(map(int, s))) for v, s in zip(variables, shapes, strict=True))

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """Shape of a variable."""
        if None not in variable.type.shape:
            return tuple(variable.type.shape)
        if variable not in self._shapes:
            if self.depends(variable):
                self._evaluate_shapes([variable])
            else:
                self._shapes[variable] = np.shape(self.value(variable))
        return self._shapes[variable]

    def with_known_shapes(self, outputs: list[Variable]) -> list[Variable]:
        """Replace the shapes of variables that depend on parameters by constants."""

        def rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
            if not isinstance(node.op, Shape | Shape_i) or not self.depends(node.inputs[0]):
                return None
            shape = np.array(self.shape(node.inputs[0]), dtype=np.int64)
            return [pt.constant(shape if isinstance(node.op, Shape) else shape[node.op.i])]

        return rebuilt(outputs, rule)

    # ------------------------------------------------------------------ values

    def learn_values(self, outputs: Iterable[Variable]) -> None:
        """Evaluate everything parameter-free that parameters are combined with, in one function."""
        wanted: dict[Variable, None] = {}
        stack = [
            i
            for v in self.dependent(outputs)
            if v.owner is not None
            for i in v.owner.inputs
            if not self.depends(i) and hasattr(i.type, "dtype")
        ]
        while stack:
            variable = stack.pop()
            if isinstance(variable, Constant | SharedVariable) or variable in self._values:
                continue
            if is_view(variable) or is_cast(variable):
                stack.extend(i for i in variable.owner.inputs if hasattr(i.type, "dtype"))
            else:
                wanted[variable] = None
        if wanted:
            values = self._evaluate(self.with_known_shapes(list(wanted)), AS_WRITTEN)
            self._values.update(zip(wanted, values, strict=True))

    def value(self, variable: Variable) -> Any:
        """Value of a variable that does not depend on a parameter; a view of data where it can."""
        if variable not in self._values:
            self._values[variable] = self._find_value(variable)
        return self._values[variable]

    def is_lower_triangular(self, matrix: Variable) -> bool:
        """Tell whether everything above the diagonal is zero, there and at two points nearby."""
        return not any(np.triu(value, 1).any() for value in self._nearby(matrix, 0.0, 0.3, 1.0))

    def keeps_its_sign(self, variable: Variable) -> bool:
        """Tell whether all numbers are positive, or negative, there and at points farther off."""
        signs = np.sign(list(self._nearby(variable, 0.0, *[1.0, 10.0] * 8)))
        return bool((signs == signs.flat[0]).all())

    def _nearby(self, variable: Variable, *scales: float) -> Iterator[NDArray]:
        """Values at the point with noise of some scales."""
        rng = np.random.default_rng(0)
        function = pytensor.function(
            list(self.parameters), variable, mode=AS_WRITTEN, on_unused_input="ignore"
        )
        start = [np.asarray(self._point[v.name]) for v in self.parameters]
        return (function(*jittered(start, scale, rng)) for scale in scales)

    def _find_value(self, variable: Variable) -> Any:
        if isinstance(variable, Constant | SharedVariable):
            return array_of(variable)
        if is_view(variable):
            # by hand, because a compiled function returns a copy
            node, storage = variable.owner, [[None]]
            node.op.perform(node, [self.value(i) for i in node.inputs], storage)
            return storage[0][0]
        (value,) = self._evaluate(self.with_known_shapes([variable]), AS_WRITTEN)
        return value

    def _evaluate(self, outputs: list[Variable], mode: Any) -> list[Any]:
        function = pytensor.function(
            list(self.parameters), outputs, mode=mode, on_unused_input="ignore"
        )
        return list(function(*[self._point[v.name] for v in self.parameters]))
