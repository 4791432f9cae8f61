"""Structures written by hand, and kernels run by Python itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from pymc_austerity._pymc import Mode, clone_replace
from pymc_austerity.model import split_log_density
from pymc_austerity.model.compiling import with_checks_as_values
from pymc_austerity.model.cut import RowLeaf
from pymc_austerity.model.predictors.structure import Predictor, RowStructure, Term
from pymc_austerity.model.rewritten import inlined


def leaf(array, name: str) -> RowLeaf:
    shape = (None, *array.shape[1:])
    return RowLeaf(pt.tensor(name, shape=shape, dtype=str(array.dtype)), array)


def vector(name: str, dtype: str = "float64"):
    return pt.tensor(name, shape=(None,), dtype=dtype)


def structure(
    predictors: Sequence[Predictor], function: Callable, leaves: Sequence[RowLeaf], size: int
) -> RowStructure:
    """Rows as a function of predictors and of all leaves but the first; checks are values."""
    etas = tuple(vector(f"eta_{k}") for k in range(len(predictors)))
    graph = function(*etas, *[leaf.placeholder for leaf in leaves[1:]])
    graph = with_checks_as_values(pm.Model(), graph)
    return RowStructure(tuple(predictors), etas, graph, tuple(leaves), size, np.dtype("float64"))


def by_entries(model: pm.Model, **settings) -> tuple[RowStructure, Callable]:
    """A structure in which every parameter is a predictor, and log-densities of rows at a point.

    No linear predictor has to be found for it, so all of the row graph is unrolled.
    """
    split = split_log_density(model, **settings)
    split = replace(split, rows=inlined([split.rows])[0])
    initial = model.initial_point()
    etas, replacements = [], {}
    for variable in split.value_vars:
        shape = np.shape(initial[variable.name])
        own = [pt.scalar(f"{variable.name}_{k}") for k in range(int(np.prod(shape)))]
        etas += own
        stacked = pt.stack(own).reshape(shape) if shape else own[0]
        replacements[variable] = pt.specify_shape(stacked, shape).astype(variable.type.dtype)
    function = clone_replace(split.rows, replacements, rebuild_strict=False)
    predictors = [Predictor((Term(np.array([k])),), None, eta.name) for k, eta in enumerate(etas)]
    dtype = np.dtype(pytensor.config.floatX)
    made = RowStructure(tuple(predictors), tuple(etas), function, split.leaves, len(etas), dtype)
    inputs = [*etas, *[leaf.placeholder for leaf in split.leaves]]
    mode = Mode(linker="py", optimizer="fast_compile")
    with model:
        rows = pm.compile(inputs, function, mode=mode, on_unused_input="ignore")
    rows.trust_input = True
    return made, lambda point, *block: rows(*[np.asarray(v, dtype) for v in point], *block)


def points_near(model: pm.Model, rng: np.random.Generator, n_points: int) -> list[np.ndarray]:
    """Raveled points about the initial one; discrete variables stay."""
    initial = model.initial_point()
    points = []
    for _ in range(n_points):
        jittered = [
            np.ravel(initial[v.name] + 0.3 * rng.normal(size=np.shape(initial[v.name])))
            if v.type.dtype.startswith("float")
            else np.ravel(initial[v.name])
            for v in model.value_vars
        ]
        points.append(np.concatenate(jittered).astype(float))
    return points


def run_by_python(source: str) -> Callable:
    """The function `differences` of generated source on rows in order, not compiled."""
    plain = source.replace("import carray, njit", "import carray\nnjit = lambda **_: lambda f: f")
    namespace: dict = {"CACHE": False}
    exec(plain, namespace)

    def differences(new, old, starts, out, *block):
        rows = np.arange(out.size, dtype=np.uint64)
        namespace["differences"](new, old, starts, rows, out, *block)

    return differences
