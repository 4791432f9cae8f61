"""Models on their way to what is sampled."""

from pymc_austerity.setup.coordinates import centered_problem
from pymc_austerity.setup.levels.build import build_grouped
from pymc_austerity.setup.prepared import prepare
from pymc_austerity.setup.problem import pose


def posed(model):
    """The problem of a model, all of whose variables are moved together."""
    return pose(prepare(model), list(model.value_vars), {})


def grouped(model):
    """The problem in centered coordinates, and its target."""
    with model:
        problem, coordinates = centered_problem(posed(model))
        return problem, build_grouped(problem, coordinates)
