"""Kernels of all shapes of models give the numbers of the model, or say why there is none."""

import numpy as np
import pytest

from pymc_austerity.model.kernel.kernel import written_kernel
from tests.model.kernel.structures import by_entries, points_near, run_by_python
from tests.model.predictors.brute_force import of_shape
from tests.zoo.all_shapes import SHAPES

N_ROWS = 53
REFUSED = {"censored_gamma": "GammaInc"}
LABELLED = {"labelled"}  # its parameters have labels, which by_entries does not know
SPARSE = {"sparse_column", "sparse_beside_groups", "sparse_row", "sparse_classes", "embedding_bag"}
"""By entries, a row of these is one of many predictors; PyTensor 2 reshapes what picks it."""


OFTEN = {
    "logistic", "slopes_by_group", "student_t", "censored", "categorical_logits", "zero_inflated",
    "missing_covariates", "hurdle_with_dispersion", "censored_gamma", "monotone_effect",
}  # fmt: skip
"""Shapes of the usual tier; the others are in the exhaustive one."""


def shapes() -> list:
    works = [s for s in SHAPES.values() if s.expect == "works" and s.name not in LABELLED | SPARSE]
    return [
        pytest.param(s, id=s.name, marks=[] if s.name in OFTEN else [pytest.mark.exhaustive])
        for s in works
    ]


@pytest.mark.parametrize("shape", shapes())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # Python's numbers warn where numba does not
def test_kernel_gives_the_numbers_of_the_model(shape, rng):
    model = shape.build(N_ROWS)
    structure, rows = by_entries(model, **shape.settings)
    kernel = written_kernel(structure, 0)
    if shape.name in REFUSED:
        assert REFUSED[shape.name] in kernel
        return
    assert not isinstance(kernel, str), kernel
    new, old = points_near(model, rng, 2)
    block = [leaf.array[:20] for leaf in structure.leaves]
    found = np.empty(20)
    differences = run_by_python(kernel.source)
    points = [kernel.ordered(point).tolist() for point in (new, old)]  # Python adds its own bools
    differences(*points, kernel.starts, found, *block)
    expected = rows(new, *block) - rows(old, *block)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", sorted(SPARSE))
def test_rows_of_sparse_matrices(name, rng):
    found = of_shape(name, rng)
    kernel = written_kernel(found.structure, 0)
    new, old = found.point(), found.point()
    block, differences = found.block(20), np.empty(20)
    points = [kernel.ordered(found.raveled(point)) for point in (new, old)]
    run_by_python(kernel.source)(*points, kernel.starts, differences, *block)
    expected = found.rows(new, block) - found.rows(old, block)
    np.testing.assert_allclose(differences, expected, rtol=1e-7, atol=1e-9)
