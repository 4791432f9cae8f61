"""Set-up gives up a plan when its time is over, between two stages."""

import pytest

from pymc_austerity.setup import deadline as module


def test_no_stage_begins_after_the_deadline(monkeypatch):
    now, shown = [0.0], []
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    say = module.with_deadline(shown.append, 10.0)
    now[0] = 9.0
    say("compiling")
    now[0] = 12.0
    with pytest.raises(module.SetupTooLongError, match="12 s before bounding the rows"):
        say("bounding the rows")
    assert shown == ["compiling"]
