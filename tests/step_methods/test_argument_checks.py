"""What does not go together with a step method is said in one sentence, before anything begins."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity import AusterityMH, DataError, GroupedMH, SettingError
from pymc_austerity._pymc import PYMC_GENERATION
from pymc_austerity.model.compiling import compiled
from tests.running import QUIET, sample
from tests.step_methods.models import normal_mean


@pytest.fixture(scope="module")
def built():
    """A model and its step method."""
    model = normal_mean()
    with model:
        return model, AusterityMH(batch_size=100)


def refused(error, *words, step, model, **settings):
    with pytest.raises(error) as caught:
        sample(step, model, draws=5, tune=5, chains=1, **settings)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert "\n" not in message and message.endswith(".")


def test_a_step_method_of_another_model(built):
    _, step = built
    refused(
        SettingError, "another model", "construct a new AusterityMH", step=step, model=normal_mean()
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_variable_of_two_step_methods(built, first):
    model, step = built
    with model:
        both = [step, pm.Metropolis()] if first else [pm.Metropolis(), step]
    words = ["'mu' is moved by both", "AusterityMH", "Metropolis", "leave one of them out"]
    refused(SettingError, *words, step=both, model=model)


def test_the_start_of_nuts(built):
    model, step = built
    words = ["init='adapt_full' has no effect", "leave it out"]
    refused(SettingError, *words, step=step, model=model, init="adapt_full")
    sample(step, model, draws=2, tune=2, chains=1, init="auto")


@pytest.mark.skipif(PYMC_GENERATION > 5, reason="PyMC 6 leaves the model as it was")
def test_a_model_whose_posterior_predictive_was_drawn():
    """PyMC 5 then lists the response twice, and has no density of it."""
    model = normal_mean()
    with model:
        idata = pm.sample(
            draws=2, tune=2, chains=1, step=pm.Metropolis(), progressbar=False, quiet=True,
            compute_convergence_checks=False,
        )  # fmt: skip
        pm.sample_posterior_predictive(idata, progressbar=False)
    with pytest.raises(SettingError, match=r"'y' twice since .* build the model again, and name"):
        sample(AusterityMH(), model, draws=2)


@pytest.mark.parametrize("write", [pd.DataFrame, np.asarray])
def test_a_response_that_is_a_column(write):
    with pm.Model() as model:
        values = write(np.zeros((30, 1)))
        pm.Normal("y", pm.Normal("slope") * np.arange(30.0), 1.0, observed=values)
    with pytest.raises(
        DataError, match=r"'y' are a column, .* 30 of each parameter: give a vector"
    ):
        sample(AusterityMH(), model, draws=2)


@pytest.mark.few("True")
@pytest.mark.parametrize("in_a_list", [False, True])
def test_a_variable_that_was_added(built, in_a_list):
    model = normal_mean()
    with model:
        step = AusterityMH(batch_size=100)
        pm.Normal("late")
    step = [step] if in_a_list else step
    refused(SettingError, "'late' was added", "construct a new", step=step, model=model)


def test_a_likelihood_that_was_added():
    model = normal_mean()
    with model:
        step = AusterityMH(batch_size=100)
        pm.Normal("z", model["mu"], 1.0, observed=np.ones(100))
    refused(SettingError, "'z' was added", step=step, model=model)


@pytest.mark.parametrize("name", ["nutpie", "numpyro"])
def test_another_sampler(built, name):
    model, step = built
    refused(
        SettingError, f"nuts_sampler='{name}'", "step", step=step, model=model, nuts_sampler=name
    )


def test_settings_of_nuts(built):
    model, step = built
    words = ("target_accept=0.9", "NUTS")
    refused(SettingError, *words, step=step, model=model, target_accept=0.9)
    refused(SettingError, *words, step=step, model=model, nuts={"target_accept": 0.9})


@pytest.mark.choice
@pytest.mark.parametrize("given", [{"target_accept": 0.97}, {"nuts": {"target_accept": 0.97}}])
@pytest.mark.parametrize("with_discrete", [False, True])
def test_settings_of_nuts_reach_the_nuts_that_was_chosen(given, with_discrete):
    model = normal_mean()
    with model:
        if with_discrete:
            pm.Poisson("count", 3.0)
        step = AusterityMH()
    idata = sample(step, model, draws=300, tune=300, chains=1, **given)
    assert idata.sample_stats["acceptance_rate"].mean() > 0.93
    assert sample(step, model, draws=1, tune=1, chains=1) and step.target_accept == 0.8


@pytest.mark.choice
def test_settings_that_a_nuts_has_from_the_beginning():
    model = normal_mean()
    step = AusterityMH(model=model)
    words = ["step_scale=0.1", "init='advi'", "leave out step="]
    refused(SettingError, *words, step=step, model=model, nuts={"step_scale": 0.1}, init="advi")


def test_settings_of_nuts_where_few_rows_are_chosen(built, caplog, monkeypatch):
    model, step = built
    monkeypatch.setattr(step, "is_chosen_by_default", True)
    with caplog.at_level("INFO", logger="pymc.austerity"):
        sample(step, model, draws=5, tune=5, chains=1, target_accept=0.9)
    assert "target_accept=0.9 has no effect, because NUTS is not used." in caplog.messages


def test_settings_of_nuts_for_what_is_left_over():
    model = normal_mean()
    with model:
        other = pm.Normal("other")
        step = AusterityMH([model["mu"]], batch_size=100)
    posterior = sample(step, model, draws=5, tune=5, target_accept=0.9).posterior
    assert other.name in posterior


@pytest.mark.parametrize("rejected", [{"givens": [1]}, {"updates": 3}])
def test_arguments_that_pytensor_rejects(rejected):
    x = pt.scalar("x")
    with pytest.raises(SettingError, match="is rejected by PyTensor") as caught:
        compiled(normal_mean(), [x], 2.0 * x, rejected)
    assert "\n" not in str(caught.value)


def test_a_variable_without_entries():
    with pm.Model():
        nothing = pm.Normal("nothing", shape=0)
        pm.Normal("y", nothing.sum(), 1.0, observed=np.ones(1_000))
        with pytest.raises(SettingError, match="'nothing' has no entries"):
            AusterityMH()


def test_no_rows():
    with pm.Model():
        pm.Normal("y", pm.Normal("b"), 1.0, observed=np.zeros(0))
        with pytest.raises(DataError, match="'y' has no values: build the model on data"):
            AusterityMH()


def test_a_row_that_is_not_a_number_under_a_condition_on_all_rows():
    x = np.random.default_rng(1).normal(size=100)
    x[7] = np.nan
    with pm.Model():
        pm.Bernoulli("y", logit_p=x * pm.Normal("b"), observed=np.zeros(100, dtype=int))
        with pytest.raises(DataError, match="in 1 of them, the first in row 7:"):
            AusterityMH()


@pytest.mark.few("GroupedMH-40")
@pytest.mark.parametrize(("kind", "groups"), [(AusterityMH, None), (GroupedMH, 40)])
def test_a_chain_that_starts_where_the_density_is_zero(kind, groups):
    rng = np.random.default_rng(1)
    with pm.Model():
        scale = pm.HalfNormal("scale")
        effect = pm.Normal("effect", 0.0, scale, shape=groups)
        mean = effect if groups is None else effect[np.arange(1_000) % groups]
        pm.Normal("y", mean, 1.0, observed=rng.normal(size=1_000))
        step = kind()
        with pytest.raises(SettingError, match="not finite where this chain starts: give other"):
            pm.sample(5, tune=5, chains=1, cores=1, step=step, initvals={"scale": np.inf}, **QUIET)


@pytest.mark.parametrize("n_rows", [1_000, 100_000])
def test_one_row_that_is_not_a_number(n_rows):
    x = np.random.default_rng(1).normal(size=(n_rows, 2))
    x[7, 1] = np.nan
    with pm.Model():
        pm.Normal("y", x @ pm.Normal("b", shape=2), 1.0, observed=np.zeros(n_rows))
        with pytest.raises(DataError, match="in 1 of them, the first in row 7:"):
            AusterityMH()
