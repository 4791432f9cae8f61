"""What a decision and a draw record."""

import math

import pytest

from pymc_austerity.sequential import Decision
from pymc_austerity.step_methods.statistics import STATISTICS, of_decision, of_draw

N_ROWS = 1_000


def recorded(accept=True, n_rows=100, n_looks=1, error=0.02, mean=3.0, exact=None):
    decision = Decision(accept, n_rows, n_looks, error, mean, n_rows == N_ROWS, exact)
    return of_decision(decision, N_ROWS, scaling=0.5, epsilon=0.05)


def test_every_statistic_is_recorded_and_has_its_type():
    for record in (recorded(), of_draw([recorded(), recorded(exact=True)])):
        assert set(record) == set(STATISTICS)
        for name, (kind, shape) in STATISTICS.items():
            assert kind(record[name]) == record[name] and shape == [], name


@pytest.mark.parametrize(
    ("accept", "exact", "audited", "agrees"),
    [(True, None, False, True), (True, True, True, True), (True, False, True, False),
     (False, False, True, True), (False, True, True, False)],
)  # fmt: skip
def test_an_audit_is_counted_and_compared(accept, exact, audited, agrees):
    record = recorded(accept=accept, exact=exact)
    assert (record["audited"], record["audit_agrees"]) == (audited, agrees)
    assert (record["n_audited"], record["n_wrong"]) == (int(audited), int(not agrees))


def test_all_rows_are_noticed():
    assert recorded(n_rows=N_ROWS)["used_all_rows"]
    assert not recorded(n_rows=N_ROWS - 1)["used_all_rows"]


def test_a_draw_of_several_decisions():
    draw = of_draw(
        [
            recorded(n_rows=N_ROWS, n_looks=3, error=0.0, mean=math.nan),
            recorded(accept=False, n_rows=200, n_looks=1, error=0.04, mean=-2.0, exact=True),
        ]
    )
    assert draw["accepted"] == 0.5
    assert (draw["n_rows_used"], draw["n_looks"]) == (1_200, 4)
    assert draw["data_fraction"] == pytest.approx(0.6)
    assert draw["decision_error"] == pytest.approx(0.02)
    assert draw["standardized_mean"] == -2.0  # of the one that has any
    assert not draw["used_all_rows"]
    assert draw["audited"] and not draw["audit_agrees"]
    assert (draw["n_audited"], draw["n_wrong"]) == (1, 1)


def test_no_decision_has_a_mean():
    assert math.isnan(of_draw([recorded(mean=math.nan)] * 2)["standardized_mean"])
