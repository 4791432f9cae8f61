"""The time that bounds of all rows are said to take."""

from types import SimpleNamespace

import numpy as np
import pytest

from pymc_austerity.setup import exact

ROWS = 3_000_000


@pytest.fixture
def minutes(monkeypatch):
    """What is said of bounds whose time has a constant part and a part for each row, seconds."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(exact, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(exact, "usual_threads", lambda: 1)

    def said(constant, each):
        def of_any(block):
            clock.now += constant + each * len(block[0])

        bounds = SimpleNamespace(of_any=of_any)
        return exact._minutes(bounds, [np.zeros(50_000)], ROWS)

    return said


def test_a_constant_part_is_not_taken_for_time_of_rows(minutes):
    assert minutes(0.5, 2e-6) == pytest.approx(ROWS * (2e-6 + 0.5 / 50_000) / 60.0)


def test_rows_that_take_long(minutes):
    assert minutes(0.0, 1e-3) == pytest.approx(ROWS * 1e-3 / 60.0)


def test_a_few_rows_suffice_where_bounds_are_fast(minutes):
    assert minutes(0.002, 1e-6) == pytest.approx(ROWS * (1e-6 + 0.002 / 2_000) / 60.0)
