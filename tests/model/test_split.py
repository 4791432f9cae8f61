"""What is split how, and what a user is told about models that cannot be split."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.errors import DataError, NotRowwiseError, SettingError, SettingTypeError
from pymc_austerity.model import find_predictors, split_log_density
from pymc_austerity.step_methods.summary import explain, row_length_deterministics
from tests.model.splitting import at_start
from tests.zoo.all_shapes import SHAPES

N_ROWS, TWO, SMALLER, RIDGE = 53, "two_likelihoods", "a_smaller_likelihood", "prior_as_a_potential"


def model_of(name: str) -> pm.Model:
    return SHAPES[name].build(N_ROWS)


class TestChoice:
    @pytest.mark.parametrize(
        ("name", "likelihood", "subsampled", "in_full"),
        [
            ("two_likelihoods", None, ("y1", "y2"), {"b"}),  # those with the most rows
            (SMALLER, None, ("y1",), {"b", "s", "y2"}),
            ("two_likelihoods", ["y2"], ("y2",), {"b", "y1"}),
            ("missing_observations", ["y"], ("y_observed",), {"b", "s", "y_unobserved"}),
        ],
    )
    def test_which_variables_are_subsampled(self, name, likelihood, subsampled, in_full):
        split = split_log_density(model_of(name), likelihood=likelihood)
        assert split.subsampled == subsampled
        assert {term.name for term in split.evaluated_in_full} == in_full

    def test_the_axis_of_the_rows(self):
        split = split_log_density(model_of("rows_on_the_second_axis"), axis=1)
        assert split.n_rows == N_ROWS

    def test_entries_of_a_matrix_where_they_read_crossed_parameters(self):
        with pm.Model() as model:
            a, b = pm.Normal("a", shape=6), pm.LogNormal("b", shape=9)
            pm.Bernoulli("y", logit_p=a[:, None] * b, observed=np.eye(6, 9, dtype=int))
        predictors = find_predictors(at_start(model)).predictors
        assert {p.name for p in predictors} == {"a[data]", "b_log__[data]"}

    def test_variables_by_row_are_the_users_own(self):
        model = model_of("random_effects_by_row")
        split = split_log_density(model)
        assert split.local_variables == {model.rvs_to_values[model["effect"]]}

    def test_rows_that_are_all_alike(self):
        with pm.Model() as model:
            pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.ones(9, dtype=int))
        split = split_log_density(model)
        assert [leaf.array.shape for leaf in split.leaves] == [(9,)]

    def test_a_minibatch_is_undone_in_terms_of_the_users_variables(self):
        model = model_of("minibatch")
        split = split_log_density(model)
        assert split.n_rows == N_ROWS
        assert split.value_vars == tuple(model.value_vars)
        value = split.row_free.eval({model.value_vars[0]: np.zeros(3)}, mode="FAST_COMPILE")
        assert value == pytest.approx(-1.5 * np.log(2 * np.pi))


def _drawn(rng, mean, sd, size):
    return rng.normal(mean, sd, size)


class TestBadInput:
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyMC's own use of PyTensor
    def test_a_random_log_density(self):
        with pm.Model() as model:
            mean = pm.Normal("mean")
            pm.Simulator("y", _drawn, mean, 1.0, observed=[0.3, 1.0])
        with pytest.raises(NotRowwiseError, match=r"'y' is random.*sample_smc"):
            split_log_density(model)

    @pytest.mark.parametrize(
        ("name", "settings", "error", "words"),
        [
            (TWO, {"likelihood": ["yy1"]}, SettingError, "'yy1'.*'y1' may be meant"),
            (TWO, {"likelihood": ["b"]}, SettingError, "'b'.*choose from 'y1', 'y2'"),
            (TWO, {"likelihood": []}, SettingError, "choose from 'y1', 'y2'"),
            (TWO, {"likelihood": 3}, SettingTypeError, "give the names"),
            (TWO, {"likelihood": [3]}, SettingTypeError, "give the names"),
            (TWO, {"axis": -1}, SettingError, "from the front"),
            (TWO, {"axis": 0.5}, SettingTypeError, "from the front"),
            (TWO, {"axis": True}, SettingTypeError, "from the front"),
            (TWO, {"axis": 1}, NotRowwiseError, "'y1'.*axis="),
            (SMALLER, {"likelihood": ["y1", "y2"]}, SettingError, "'y1' has 53, 'y2' has 11"),
            ("likelihood_as_a_potential", {}, DataError, r"likelihood=\['lik'\]"),
            (RIDGE, {"likelihood": ["ridge"]}, NotRowwiseError, "potential 'ridge'.*leave out"),
        ],
    )
    def test_is_refused_with_a_remedy(self, name, settings, error, words):
        with pytest.raises(error, match=words):
            split_log_density(model_of(name), **settings)

    def test_nothing_observed(self):
        with pm.Model() as model:
            pm.Normal("mu")
        with pytest.raises(DataError, match="observed="):
            split_log_density(model)


class TestStaleData:
    @pytest.mark.parametrize(
        ("name", "change", "stale"),
        [
            ("linear_with_data", lambda x: None, []),
            ("linear_with_data", lambda x: x.set_value(np.zeros((N_ROWS, 3))), ["X"]),
            ("linear_with_data", lambda x: x.set_value(x.get_value().copy()), []),
            ("linear_with_data", lambda x: x.get_value(borrow=True).sort(axis=0), ["X"]),
            ("sparse_beside_groups", lambda x: x.set_value(2.0 * x.get_value()), ["X"]),
        ],
        ids=["not changed", "set", "set to the same", "changed in place", "sparse"],
    )
    def test_data_that_are_others_now_are_named(self, name, change, stale):
        split = split_log_density(model_of(name))
        (source,) = [source for source in split.data_sources if source.name == "X"]
        change(source.variable)
        assert split.stale() == stale

    def test_data_of_the_prior_are_read_anew_and_never_stale(self):
        with pm.Model() as model:
            scale = pm.Data("scale", 2.0)
            pm.Normal("y", pm.Normal("mu", 0, scale), 1.0, observed=np.arange(5.0))
        split = split_log_density(model)
        with model:
            pm.set_data({"scale": 3.0})
        assert split.stale() == []
        found = split.row_free.eval({model.value_vars[0]: 0.0}, mode="FAST_COMPILE")
        assert found == pytest.approx(-np.log(3.0) - 0.5 * np.log(2 * np.pi))


class TestWords:
    def test_say_what_is_read_and_what_is_evaluated_in_full(self):
        model = model_of("survival_with_a_potential")
        split = split_log_density(model)
        text = explain(split, [model.rvs_to_values[model["b"]]])
        assert "Split into rows: 'y'" in text
        assert "'cens': a potential" in text
        assert "Left to other step methods: 'a'" in text

    def test_computed_data_and_jacobians_are_told(self):
        with pm.Model() as model:
            x = pm.Data("x", np.arange(9.0))
            sigma = pm.HalfNormal("sigma")
            pm.Normal("y", pm.math.exp(x) * pm.Normal("b"), sigma, observed=np.arange(9.0))
        lines = explain(split_log_density(model)).splitlines()
        assert any("(computed from the data once, at the start): 9 of float64" in x for x in lines)
        assert "  reads y: 9 of float64, 0.0 MB." in lines
        assert "  'sigma': a prior, with the Jacobian of its transform." in lines
        assert "  'b': a prior." in lines

    def test_name_a_potential_that_could_be_subsampled(self):
        with pm.Model() as model:
            mu = pm.Normal("mu")
            pm.Normal("y", mu, 1.0, observed=np.arange(9.0))
            pm.Potential("more", -((mu - np.arange(9.0)) ** 2))
        assert "likelihood=[..., 'more']" in explain(split_log_density(model))

    def test_name_variables_by_row(self):
        text = explain(split_log_density(model_of("random_effects_by_row")))
        assert "One entry per row: 'effect'" in text

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("dims_and_coords", ["mu"]), ("non_centered_two_levels", ["mu"]), ("linear", [])],
    )
    def test_deterministics_by_row_are_named(self, name, expected):
        assert row_length_deterministics(split_log_density(model_of(name))) == expected
