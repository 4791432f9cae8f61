"""A run that went wrong says so when it ends, once, and what to do."""

import warnings

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, AusterityWarning
from pymc_austerity._pymc import sampling
from pymc_austerity.diagnostics.chains import what_is_wrong
from tests.diagnostics.runs import audited, forms_of, synthetic

RANDOM_WALK = {
    "proposal": "RandomWalkProposal",
    "control_variates": 0,
    "no_control_variates": "no derivative exists",
}


def of(statistics, **variables):
    return what_is_wrong(forms_of(statistics, **variables)["tree"])


def test_nothing_is_said_of_a_run_that_is_fine(rng):
    assert of(synthetic(2, 500), a=rng.normal(size=(2, 500))) == ""
    assert of(audited(500, 30, n_draws=500)) == ""  # 6 %, by chance


@pytest.mark.parametrize("form", ["tree", "idata"])
def test_chains_that_disagree(form, rng):
    a = np.cumsum(rng.normal(size=(2, 500)), axis=1)
    run = forms_of(synthetic(2, 500, attrs=RANDOM_WALK), a=a)[form]
    said = what_is_wrong(run)
    assert said.startswith("The 2 chains do not agree ('a': r_hat ")
    assert "a random walk (without control variates, because no derivative exists) expl" in said
    assert "use NUTS" in said
    assert said.count(".") - said.count("r_hat ") == 1
    assert what_is_wrong(run, look_at_draws=False) == ""


def test_several_modes_have_a_remedy_of_their_own(rng):
    a = rng.normal(np.array([[-9.0], [9.0]]), size=(2, 500))
    said = of(synthetic(2, 500, attrs=RANDOM_WALK), a=a)
    assert "several modes" in said
    assert "NUTS" not in said


def test_few_effective_draws(rng):
    """Five values in each half of each chain, which agree: 1,000 draws are worth about 10."""
    values = rng.normal(size=5)
    a = np.tile(np.repeat([*values, *rng.permutation(values)], 100), (4, 1))
    said = of(synthetic(4, 1_000, attrs=RANDOM_WALK), a=a + 1e-9 * rng.normal(size=a.shape))
    assert said.startswith("4,000 draws are only ")
    assert "posterior sd: a random walk" in said


@pytest.mark.parametrize(
    ("attrs", "says"),
    [
        ({}, "by epsilon, which bounds the error of one look: choose a smaller epsilon"),
        (
            {"max_error": 0.05, "test": "designed"},
            "5.00% allowed by max_error: choose a smaller max_error",
        ),
        ({"assumption": "bounded differences"}, "by epsilon: the bound of the differences is too"),
        ({"normality": "failed"}, "means of first looks were not normal"),
    ],
)
def test_a_limit_that_audits_contradict(attrs, says):
    said = of(audited(200, 30, n_draws=200, attrs=attrs))
    assert said.startswith("30 of 200 audited decisions were wrong, more than the ")
    assert says in said


def test_audits_of_one_chain_and_of_short_runs():
    one = audited(200, 30, n_draws=200).isel(chain=[0])
    assert "allowed by" in of(one)
    assert of(audited(50, 25)) == ""
    exact = {"used_all_rows": True, "attrs": {"acceptance_rule": "barker"}}
    assert of(audited(200, 30, n_draws=200, **exact)) == ""


@pytest.mark.parametrize(("shift", "is_said"), [(0.0, False), (0.35, True)])
def test_limits_are_those_of_vehtari_et_al(shift, is_said, rng):
    """Two chains of 1,000 independent draws a third of a standard deviation apart: r_hat 1.02."""
    said = of(synthetic(2, 1_000), a=rng.normal([[0.0], [shift]], size=(2, 1_000)))
    assert ("The 2 chains may not agree ('a': r_hat 1.0" in said) == is_said
    assert ("times as many draws" in said) == is_said


@pytest.mark.parametrize(("resumed", "advice"), [(0, "tune for 1,000 steps"), (1, "as many draws")])
def test_without_tuning_only_a_resumed_run_has_learnt(resumed, advice, rng):
    run = synthetic(2, 1_000, attrs={"tuning_steps": 0, "resumed": resumed})
    assert advice in of(run, a=rng.normal([[0.0], [0.35]], size=(2, 1_000)))


def test_short_runs_may_differ_by_chance(rng):
    """Of 300 entries, some have an r_hat above 1.01 in 200 independent draws."""
    assert of(synthetic(2, 100), a=rng.normal(size=(2, 100, 300))) == ""


def test_chains_that_read_very_different_numbers_of_rows():
    said = of(synthetic(2, 200, n_rows_used=[[100], [900]]))
    assert "chain 1 reads 900 rows per decision in the median, chain 0 reads 100" in said
    assert of(synthetic(2, 200, n_rows_used=[[100], [250]])) == ""
    # each chain designs its own test
    designed = {"max_error": 0.05, "test": "designed"}
    assert of(synthetic(2, 200, n_rows_used=[[100], [900]], attrs=designed)) == ""


def test_chains_that_accept_very_differently():
    accepted = np.zeros((2, 200))
    accepted[0, ::3] = 1.0
    assert "chain 0 accepts 34%, chain 1 0%" in of(synthetic(2, 200, accepted=accepted))
    rare = np.zeros((2, 200))
    rare[0, :4] = 1.0
    assert of(synthetic(2, 200, accepted=rare)) == ""
    assert of(synthetic(2, 200, accepted=np.nan)) == ""


@pytest.mark.parametrize("n_chains", [1, 3])
def test_runs_that_did_not_move(n_chains):
    said = of(synthetic(2, 200, accepted=0.0).isel(chain=[0] * n_chains))
    assert said.startswith("No decision changed anything, so all draws are where chains began")
    assert said.endswith("or tune longer.")


def test_a_single_chain_that_hardly_moved(rng):
    one, fine = synthetic(2, 500).isel(chain=[0]), rng.normal(size=(1, 500))
    frozen = 1.3 + 1e-13 * np.cumsum(fine, axis=1)
    said = of(one, fine=fine, frozen=frozen)
    assert said.startswith("The chain hardly moved ('frozen': ")
    assert "effective draws of 500): the proposals do not fit" in said
    assert "('a': 1 effective draws of 500)" in of(
        one, a=np.ones((1, 500)), k=np.ones((1, 500), int)
    )
    assert of(one, fine=fine, a=np.ones((1, 500))) == ""
    assert of(one, k=np.ones((1, 500), int)) == ""
    run = forms_of(one, frozen=frozen)["tree"]
    assert what_is_wrong(run, look_at_draws=False) == ""


def test_a_single_long_chain_with_few_effective_draws(rng):
    one, slow = synthetic(2, 1_000).isel(chain=[0]), rng.normal(size=(1, 1_000))
    for k in range(1, 1_000):
        slow[:, k] += 0.95 * slow[:, k - 1]
    said = of(one, slow=slow)
    assert said.startswith("The chain mixes slowly ('slow': ")
    assert "effective draws of 1,000): the proposals do not fit" in said
    assert of(one.isel(draw=slice(999)), slow=slow[:, :999]) == ""


def test_all_that_is_wrong_is_in_one_sentence(rng):
    a = rng.normal(np.array([[0.0], [9.0]]), size=(2, 200))
    said = of(audited(200, 30, n_draws=200), a=a)
    assert "allowed by" in said
    assert "; the 2 chains do not agree" in said


# ------------------------------------------------------------------ real runs


def two_modes():
    y = np.random.default_rng(1).normal(4.0, 1.0, size=1_000)
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 10.0)
        pm.Normal("y", a**2, 1.0, observed=y)
    return model


def sampled(model, step=AusterityMH, **settings):
    defaults = {"draws": 200, "tune": 200, "chains": 2, "cores": 1, "random_seed": 1}
    places = [{"a": 2.0}, {"a": -2.0}]
    with model, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modes that are known before a run are said then
        made = step()
    with model, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pm.sample(
            step=made, initvals=places, progressbar=False, quiet=True, **(defaults | settings)
        )
    return [each for each in caught if issubclass(each.category, AusterityWarning)]


def test_two_modes_are_told_where_the_run_was_called():
    (warning,) = sampled(two_modes(), draws=1_000)
    assert "The 2 chains do not agree ('a': r_hat" in str(warning.message)
    assert "several modes" in str(warning.message)
    assert warning.filename == __file__


def test_a_check_that_breaks_does_not_lose_the_draws():
    def broken(idata, *, look_at_draws):
        raise ValueError("no")

    said = sampling._in_words(broken, None, look_at_draws=True)
    assert said.startswith("The run could not be checked (ValueError: no): look at r_hat")
