"""Reports say what was found and what to change, and nothing else."""

import re

import numpy as np
import pytest
import xarray as xr

from pymc_austerity import SettingError
from pymc_austerity.diagnostics import audit, report
from pymc_austerity.diagnostics.chains import what_is_wrong
from pymc_austerity.plots import plot_data_usage
from tests.diagnostics.runs import audited, forms_of, real, synthetic
from tests.step_methods.models import normal_mean, normal_regression

QUIET = {"n_audited": 1, "attrs": {"control_variates": 2, "proposal": "ProposalMixture"}}


FINE = np.random.default_rng(1).normal(size=(2, 1_000))
"""Draws of chains that agree."""


def advice(run, **kwargs):
    run = forms_of(run, a=FINE)["tree"] if isinstance(run, xr.Dataset) else run
    text = " ".join(report(run, **kwargs).split("What to change")[1].split())
    return [item.strip() for item in text.split("- ") if item.strip()]


def test_numbers_are_in_the_text():
    text = report(audited(40, 2, attrs={"setup_seconds": 1.25}))
    for number in (
        "100 decisions in 2 chains on 1,000 rows",
        "0.02 on average and 0.02 at most (epsilon 0.05)",
        "2 wrong decisions (2%)",
        "0.0% of the decisions are exact",
        "40 of 100 decisions checked on all rows, 2 of these wrong: 5.00%, with 95% interval 0.61%",
        "10.00% of the rows on average: mean 100, median 100, 95% quantile 100",
        "1.0 looks",
        "100% of the proposals were accepted",
        "took 1.2 s",
    ):
        assert number in " ".join(text.split())


def test_nothing_to_change():
    assert advice(synthetic(n_draws=500, **QUIET)) == ["Nothing stands out."]


def test_more_draws_where_chains_agree_and_are_short(rng):
    """An autoregression whose draws are worth about a seventh: 286 of 2,000."""
    a = np.zeros((2, 1_000))
    noise = rng.normal(size=a.shape)
    for t in range(1, 1_000):
        a[:, t] = 0.75 * a[:, t - 1] + noise[:, t]
    (said,) = advice(forms_of(synthetic(2, 1_000, **QUIET), a=a)["tree"])
    found, factor = re.search(
        r"(\d+) effective draws of .* take ([\d.]+) times as many", said
    ).groups()
    assert 200 < int(found) < 400
    assert float(factor) == pytest.approx(400 / int(found), abs=0.1)


@pytest.mark.parametrize(
    ("draws", "why"),
    [
        (FINE[:, :20], "chains have 20 draws"),
        (FINE[:1], "there is one chain"),
        (np.ones((2, 200)), "no variable varies"),
    ],
)
def test_convergence_that_was_not_checked_is_told(draws, why):
    n_chains, n_draws = draws.shape
    run = forms_of(synthetic(n_chains, n_draws, **QUIET), a=draws)["tree"]
    assert f"Convergence was not checked, because {why}." in report(run)
    assert advice(run)[-1].startswith(f"Convergence was not checked, because {why}: that takes")
    assert "only the statistics of the run were given" in " ".join(report(synthetic()).split())


def test_a_healthy_chain_whose_mean_a_few_decisions_dominate_is_fine():
    rows = np.where(np.arange(500) % 100, 2, [[100], [40_000]])
    assert advice(synthetic(2, 500, **QUIET, n_rows_used=rows)) == ["Nothing stands out."]


def test_runs_of_nuts():
    """They record rows and no decisions; the report says the sampler, the rows and the chains."""
    attrs = {"sampler": "AllRowsNUTS", "acceptance_rule": "none", "setup_seconds": 1.5}
    attrs |= {"reason": "there are few"}
    run = synthetic(2, 500, n_rows_used=7_000, attrs=attrs)[["n_rows_used", "scaling"]]
    for name in ("epsilon", "batch_size", "steps_per_draw"):
        del run.attrs[name]
    text = " ".join(report(forms_of(run, a=FINE)["tree"]).split())
    assert text.startswith("1,000 draws in 2 chains by NUTS on 1,000 rows")
    assert "the chains agree" in text
    assert "A draw read 7,000 rows on average, all of them 7.0 times" in text
    assert "All rows were evaluated, because there are few." in text
    assert "there is nothing to audit" in text
    assert "took 1.5 s" in text
    assert not any(word in text for word in ("nan", "Acceptance", "accepted", "looks", "epsilon"))
    assert advice(run) == ["Nothing stands out."]
    assert what_is_wrong(forms_of(run, a=FINE)["tree"]) == ""
    apart = np.cumsum(FINE, axis=1)
    (said,) = advice(forms_of(run, a=apart)["tree"])
    assert "write the model with less dependence" in said
    assert "NUTS" not in said
    assert audit(run)["n_audited"].sum() == 0
    assert plot_data_usage(run)[0].lines[0].get_ydata()[0] == 7_000
    run.attrs["sampler"] = "PyMCSteps"
    nothing = run[[]].drop_vars(list(run.coords))  # as BinaryGibbsMetropolis records
    for own, n_draws in ((run[["scaling"]], "1,000"), (nothing, "2,000")):
        text = " ".join(report(forms_of(own, a=FINE)["tree"]).split())
        said = f"{n_draws} draws in 2 chains by step methods of PyMC on 1,000 rows"
        assert text.startswith(said)
        assert "all of them 1.0 times" in text


@pytest.mark.parametrize(
    ("run", "first"),
    [
        (audited(50, 25), "More decisions are wrong than the 5.00% allowed by epsilon"),
        (synthetic(), "No decision was checked on all rows"),
        (audited(50, 0), "50 audited decisions are too few to confirm a rate of 5.00%"),
        (audited(600, 25, n_draws=600), "The audit neither confirms nor contradicts"),
    ],
)
def test_what_the_audit_means_comes_first(run, first):
    assert advice(run)[0].startswith(first)


@pytest.mark.parametrize(
    ("changed", "attrs", "advised"),
    [
        ({"data_fraction": 0.7}, {"control_variates": 0}, "Use control variates"),
        ({"data_fraction": 0.7}, {}, "far from their anchor"),
        ({"n_looks": 12}, {}, "12.0 looks on average"),
        ({"accepted": 0.02}, {"proposal": "RandomWalkProposal"}, "steps are too long"),
        ({"accepted": 0.9}, {"proposal": "RandomWalkProposal"}, "steps are too short"),
        ({"accepted": [[1.0], [0.0]]}, {}, "Nothing was accepted in chain 1"),
        ({"n_rows_used": [[100], [900]]}, {}, "chain 1 reads 900 rows per decision in the median"),
    ],
)
def test_one_thing_to_change(changed, attrs, advised):
    run = synthetic(n_draws=500, **(QUIET | changed | {"attrs": QUIET["attrs"] | attrs}))
    (only,) = advice(run)
    assert advised in only


def test_promise_of_the_user():
    run = synthetic(n_draws=500, **QUIET)
    assert "audited decisions are too few" in advice(run, limit=1e-4)[0]
    with pytest.raises(SettingError, match="limit"):
        report(run, limit=2)


@pytest.mark.parametrize("build", [normal_mean, normal_regression])
def test_real_runs(build):
    text = report(real(build, audit=1.0))
    assert text.startswith("400 decisions in 2 chains on 2,000 rows")
    assert "400 of 400 decisions checked" in " ".join(text.split())
    assert not any(word in text for word in ("nan", "None", "inf "))


# ------------------------------------------------------------------ kinds of runs


def kind_of(n_draws=500, **attrs):
    """A run some of whose decisions look as if something had to be changed."""
    changed = {name: attrs.pop(name) for name in list(attrs) if name in synthetic().data_vars}
    usual = {"control_variates": 0, "sampling": "Windows", "proposal": "RandomWalkProposal"}
    return synthetic(n_draws=n_draws, **({"accepted": 0.3} | changed), attrs=usual | attrs)


MANY_LOOKS = {"n_looks": 30, "data_fraction": 0.7}
EXACT = {"used_all_rows": True, "data_fraction": 1.0, "decision_error": 0.0}


@pytest.mark.parametrize(
    ("run", "advised", "not_advised"),
    [
        (kind_of(**MANY_LOOKS, n_audited=1, test="designed", max_error=0.05),
         ["a larger max_error"], ["batch_size", "epsilon"]),
        (kind_of(**MANY_LOOKS, n_audited=1, assumption="bounded differences"),
         ["find a smaller bound"], ["batch_size", "larger epsilon"]),
        (kind_of(**MANY_LOOKS, n_audited=1, sampler="AusterityGibbs"),
         ["Updates read 70% of the factors", "An update takes"], ["control", "rows", "MH"]),
        (kind_of(sampler="AusterityGibbs"), ["pass audit=0.1 to AusterityGibbs"], ["rows", "MH"]),
        (kind_of(n_audited=1, n_wrong=1, sampler="AusterityGibbs"),
         ["More updates are wrong", "smaller epsilon"], ["control", "rows", "MH"]),
        (kind_of(n_audited=1, n_wrong=1, max_error=0.01, test="designed"),
         ["smaller max_error"], ["epsilon"]),
        (kind_of(n_audited=1, n_wrong=1, assumption="bounded differences"),
         ["bound"], ["epsilon bounds one"]),
        (kind_of(n_audited=1, normality="failed"), ["not normal before the run", "influence"], []),
        (kind_of(n_audited=1, normality="failed", sampling="StratifiedWindows"),
         ["not normal before the run", "larger batch_size"], ["influence"]),
        (kind_of(**(EXACT | {"used_all_rows": [[True], [False]]}), n_audited=1),
         ["choose a smaller batch_size"], ["control"]),
    ],
    ids=range(10),
)  # fmt: skip
def test_advice_is_for_the_kind_of_run(run, advised, not_advised):
    text = " ".join(advice(run))
    assert all(words in text for words in advised), text
    assert not any(words in text for words in not_advised), text


def test_a_failed_check_is_told():
    text = report(kind_of(normality="failed"))
    assert "NOT normal enough" in text
    assert "wrong decisions (" not in text  # what the test believed is not passed on
    assert "NOT normal enough" not in report(kind_of(normality="passed"))
    broken = kind_of(n_audited=1, n_wrong=1, normality="failed")
    (only,) = advice(broken)
    assert "were not normal before the run, so choose a larger batch_size, sample by" in only
    assert "smaller epsilon" not in only


def test_updates_of_a_sweep_are_counted():
    attrs = {"sampler": "AusterityGibbs", "n_factors": 5_000, "steps_per_draw": 60}
    run = synthetic(n_rows_used=6_000, n_looks=60, n_audited=2, accepted=0.4, attrs=attrs)
    text = " ".join(report(run).split())
    assert text.startswith("6,000 updates in 2 chains, each on 1,000 of 5,000 factors at most")
    assert "200 of 6,000 updates checked on all factors" in text
    assert "An update read 10.00% of its factors" in text
    assert "40% of the updates changed their entry" in text
