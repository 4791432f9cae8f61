"""Every shape of model is cut right, or refused with a reason, in both precisions."""

import pytensor
import pytest

from pymc_austerity.errors import NotRowwiseError
from pymc_austerity.model import split_log_density, verify
from tests.zoo.all_shapes import SHAPES, Shape

N_ROWS = 53


def shapes(*expect: str) -> list:
    return [pytest.param(s, id=s.name) for s in SHAPES.values() if s.expect in expect]


def built(shape: Shape):
    return shape.build(N_ROWS)


@pytest.fixture(params=["float64", pytest.param("float32", marks=pytest.mark.exhaustive)])
def precision(request):
    with pytensor.config.change_flags(floatX=request.param):
        yield request.param


@pytest.mark.parametrize("shape", shapes("works", "local"))
def test_is_cut_to_the_numbers_of_the_model(shape, precision, rng):
    model = built(shape)
    point = model.initial_point()
    split = split_log_density(model, point=point, **shape.settings)
    verify(split, point, rng=rng)
    assert bool(split.local_variables) == (shape.expect == "local")
    assert split.exact.type.ndim == 0
    assert split.rows.type.ndim == split.full.type.ndim == 1
    assert {len(leaf.array) for leaf in split.leaves} == {split.n_rows}


@pytest.mark.parametrize("shape", shapes("refused"))
def test_is_refused_with_a_reason_and_a_remedy(shape, precision):
    with pytest.raises(NotRowwiseError) as refusal:
        split_log_density(built(shape))
    message = str(refusal.value)
    assert "'y'" in message
    assert shape.because in message
    assert "use NUTS" in message
    assert message.endswith(".") and ". " not in message


def test_the_zoo_is_complete():
    expectations = [shape.expect for shape in SHAPES.values()]
    assert len(expectations) == 89
    assert expectations.count("refused") == 15
    assert expectations.count("local") == 3
