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


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    with pytensor.config.change_flags(floatX=request.param):
        yield request.param


@pytest.mark.few(
    "float64-an_observed_scalar",
    "float64-censored",
    "float64-custom_log_density",
    "float64-einsum",
    "float64-interpolation",
    "float64-item_response",
    "float64-sparse_beside_groups",
    "float64-likelihood_as_a_potential",
    "float64-linear_with_data",
    "float64-logistic",
    "float64-loop_without_memory",
    "float64-minibatch",
    "float64-missing_covariates",
    "float64-poisson_exposure",
    "float64-random_effects_by_row",
    "float64-rows_on_the_second_axis",
    "float64-slopes_by_group",
    "float64-student_t",
    "float64-switchpoint",
    "float64-two_likelihoods",
)
@pytest.mark.parametrize("shape", shapes("works", "local"))
def test_is_cut_to_the_numbers_of_the_model(shape, precision, rng):
    model = built(shape)
    point = model.initial_point()
    split = split_log_density(model, point=point, **shape.settings)
    verify(split, point, rng=rng)
    assert bool(split.local_variables) == (shape.expect == "local")
    assert split.row_free.type.ndim == 0
    assert split.rows.type.ndim == split.full.type.ndim == 1
    assert {len(leaf.array) for leaf in split.leaves} == {split.n_rows}


@pytest.mark.few(
    "float64-latent_process",
    "float64-autoregression",
    "float64-random_walk",
    "float64-cumulated_innovations",
    "float64-normal_across_rows",
    "float64-centered_predictor",
    "float64-mean_of_other_rows",
    "float64-softmax_over_rows",
    "float64-ranks",
    "float64-loop_over_time",
    "float64-one_multinomial",
    "float64-spatial",
    "float64-sparse_of_parameters",
    "float64-black_box",
)
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
    assert len(expectations) == 99
    assert expectations.count("refused") == 17
    assert expectations.count("local") == 3
