"""Reports say what was found and what to change, and nothing else."""

import numpy as np
import pytest

from pymc_austerity import SettingError
from pymc_austerity.diagnostics import report
from tests.diagnostics.runs import audited, real, synthetic
from tests.step_methods.models import normal_mean, normal_regression

QUIET = {"audited": True, "attrs": {"control_variates": 2, "proposal": "Mixture"}}


def advice(run, **kwargs):
    text = " ".join(report(run, **kwargs).split("What to change")[1].split())
    return [item.strip() for item in text.split("- ") if item.strip()]


def test_numbers_are_in_the_text():
    text = report(audited(40, 2, attrs={"setup_seconds": 1.25}))
    for number in (
        "100 decisions in 2 chains, about 1,000 rows",
        "0.02 on average and 0.02 at most (epsilon 0.05)",
        "2.0 wrong decisions (2.00%)",
        "0.0% of the decisions are exact",
        "of 40 audited decisions, 2 were wrong: 5.00%, with 95% interval 0.61%",
        "10.00% of the rows on average: mean 100, median 100, 95% quantile 100",
        "1.0 looks",
        "100% of the proposals were accepted",
        "took 1.2 s",
    ):
        assert number in " ".join(text.split())


def test_it_is_a_page():
    lines = report(audited(50, 25)).splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 88


def test_nothing_to_change():
    assert advice(synthetic(n_draws=500, **QUIET)) == ["Nothing stands out."]


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


def test_too_few_says_how_many_are_enough():
    """As many as it names, all right, confirm; one fewer does not."""
    attrs = QUIET["attrs"]
    assert "at least 72" in advice(audited(71, 0, n_draws=100, attrs=attrs))[0]
    assert advice(audited(72, 0, n_draws=100, attrs=attrs)) == ["Nothing stands out."]


@pytest.mark.parametrize(
    ("changed", "attrs", "advised"),
    [
        ({"data_fraction": 0.7}, {"control_variates": 0}, "Use control variates"),
        ({"data_fraction": 0.7}, {}, "far from their anchor"),
        ({"n_looks": 12}, {}, "12.0 looks on average"),
        ({"decision_error": 1e-7}, {"batch_size": 500}, "a smaller batch_size would do"),
        ({"accepted": 0.02}, {"proposal": "RandomWalk"}, "steps are too long"),
        ({"accepted": 0.9}, {"proposal": "RandomWalk"}, "steps are too short"),
        ({"accepted": [[1.0], [0.0]]}, {}, "Nothing was accepted in chain 1"),
        ({"n_rows_used": [[100], [900]]}, {}, "Chain 1 reads 900 rows per decision, chain 0 100"),
    ],
)
def test_one_thing_to_change(changed, attrs, advised):
    run = synthetic(n_draws=500, **(QUIET | changed | {"attrs": QUIET["attrs"] | attrs}))
    (only,) = advice(run)
    assert advised in only


def test_promise_of_the_user():
    run = synthetic(n_draws=500, **QUIET)
    assert "audited decisions are too few" in advice(run, promised=1e-4)[0]
    with pytest.raises(SettingError, match="promised"):
        report(run, promised=2)


def test_several_step_methods_and_steps():
    attrs = {"steps_per_draw": [2, 1], "epsilon": [0.01, 0.1], "audit": 0.0}
    run = synthetic(n_step_methods=2, n_rows_used=[200, 100], n_looks=[2, 1], attrs=attrs)
    together, first, second = (
        " ".join(report(run, step_method=chosen).split()) for chosen in (None, 0, 1)
    )
    assert together.startswith("300 decisions in 2 chains by 2 step methods, about 1,000 rows")
    assert "(epsilon 0.01, 0.1)" in together
    assert first.startswith("200 decisions in 2 chains, about")
    assert "(epsilon 0.01)" in first
    assert "of the draws are exact" in first
    assert "(epsilon 0.1)" in second
    assert "of the decisions are exact" in second


def test_no_warning_but_words(recwarn):
    text = " ".join(report(audited(50, 25), promised=0.1).split())
    assert "This is MORE than the 10.00% promised." in text
    assert "epsilon bounds one look" not in text
    text = " ".join(report(audited(50, 25)).split())
    assert "This is MORE than the 5.00% allowed by epsilon." in text
    assert "epsilon bounds one look" in text
    assert not recwarn.list


@pytest.mark.parametrize("build", [normal_mean, normal_regression])
def test_real_runs(build):
    text = report(real(build, audit=1.0))
    assert text.startswith("400 decisions in 2 chains, about 2,000 rows")
    assert "of 400 audited decisions" in text
    assert not any(word in text for word in ("nan", "None", "inf "))


def test_default_settings():
    text = report(real(normal_regression, control_variates="auto", audit=0.5, batch_size=None))
    assert "Use control variates" not in text
    assert np.char.count(text, "\n") > 8
