"""What does not go together with a step method is said in one sentence, before anything begins."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity import AusterityMH, DataError, GroupedMH, SettingError
from pymc_austerity._pymc import PYMC_GENERATION
from pymc_austerity.model.compiling import compiled
from tests.running import QUIET, built, refused_in_a_sentence, sample
from tests.step_methods.models import normal_mean, normal_of


@pytest.fixture(scope="module")
def paper():
    """A model and its step method."""
    model = normal_mean()
    return model, built(model, batch_size=100)


def refused(*words, step, model, **settings):
    with refused_in_a_sentence(SettingError, *words):
        sample(step, model, draws=5, tune=5, chains=1, **settings)


def test_a_step_method_of_another_model(paper):
    _, step = paper
    refused("another model", "construct a new AusterityMH", step=step, model=normal_mean())


@pytest.mark.parametrize("first", [True, False])
def test_a_variable_of_two_step_methods(paper, first):
    model, step = paper
    with model:
        both = [step, pm.Metropolis()] if first else [pm.Metropolis(), step]
    words = ["'mu' is moved by both", "AusterityMH", "Metropolis", "leave one of them out"]
    refused(*words, step=both, model=model)


def test_the_start_of_nuts(paper):
    model, step = paper
    words = ["init='adapt_full' has no effect", "leave it out"]
    refused(*words, step=step, model=model, init="adapt_full")
    sample(step, model, draws=2, tune=2, chains=1, init="auto")


@pytest.mark.skipif(PYMC_GENERATION > 5, reason="PyMC 6 leaves the model as it was")
def test_a_model_whose_posterior_predictive_was_drawn():
    """PyMC 5 then lists the response twice, and has no density of it."""
    model = normal_mean()
    step = built(model)
    idata = sample(step, model, draws=2, tune=2, chains=1)
    with model:
        pm.sample_posterior_predictive(idata, progressbar=False)
    said = r"'y' twice since .* build the model again, and name"
    for each in (AusterityMH(), step):
        with pytest.raises(SettingError, match=said):
            sample(each, model, draws=2)


@pytest.mark.parametrize("write", [pd.DataFrame, np.asarray])
def test_a_response_that_is_a_column(write):
    with pm.Model() as model:
        values = write(np.zeros((30, 1)))
        pm.Normal("y", pm.Normal("slope") * np.arange(30.0), 1.0, observed=values)
    with pytest.raises(
        DataError, match=r"'y' are a column, .* 30 of each parameter: give a vector"
    ):
        sample(AusterityMH(), model, draws=2)


@pytest.mark.few("variable-True", "likelihood-False")
@pytest.mark.parametrize("in_a_list", [False, True])
@pytest.mark.parametrize("observed", [None, np.ones(100)], ids=["variable", "likelihood"])
def test_what_was_added(observed, in_a_list):
    model = normal_mean()
    with model:
        step = AusterityMH(batch_size=100)
        pm.Normal("late", model["mu"], 1.0, observed=observed)
    step = [step] if in_a_list else step
    refused("'late' was added", "construct a new", step=step, model=model)


@pytest.mark.choice
def test_a_step_method_that_was_chosen_has_the_name_of_the_user():
    with pm.Model() as model:
        pm.Normal("mu")
        step = AusterityMH()
        pm.Normal("late")
    refused("'late' was added", "construct a new AusterityMH", step=step, model=model)


@pytest.mark.parametrize("name", ["nutpie", "numpyro"])
def test_another_sampler(paper, name):
    model, step = paper
    refused(f"nuts_sampler='{name}'", "step", step=step, model=model, nuts_sampler=name)


@pytest.mark.parametrize("given", [{"target_accept": 0.9}, {"nuts": {"target_accept": 0.9}}])
def test_settings_of_nuts(paper, given):
    model, step = paper
    refused("target_accept=0.9", "NUTS", step=step, model=model, **given)


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
    refused(*words, step=step, model=model, nuts={"step_scale": 0.1}, init="advi")


def test_settings_of_nuts_where_few_rows_are_chosen(paper, caplog, monkeypatch):
    model, step = paper
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
    with pytest.raises(DataError, match="'y' has no values: build the model on data"):
        built(normal_of(np.zeros(0)))


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
        with refused_in_a_sentence(DataError, "in 1 of them, the first in row 7:"):
            AusterityMH()
