"""Where the progress of set-up is shown."""

import logging
import time
from importlib.machinery import ModuleSpec

import pytest
from rich.console import Console

from pymc_austerity.setup import setup_progress as module


@pytest.mark.parametrize(("widgets", "shown"), [(None, 0), (ModuleSpec("ipywidgets", None), 1)])
def test_in_a_notebook_only_with_widgets(monkeypatch, widgets, shown):
    class Notebook(Console):
        statuses = 0

        def __init__(self, **kwargs):
            super().__init__(force_jupyter=True, **kwargs)

        def status(self, *args, **kwargs):
            Notebook.statuses += 1
            return Console(quiet=True).status(*args, **kwargs)

    monkeypatch.setattr(module, "Console", Notebook)
    monkeypatch.setattr(module, "find_spec", lambda name: widgets)
    with module.setup_progress("AusterityMH") as say:
        say("finding the posterior mode")
    assert Notebook.statuses == shown


def test_a_log_without_a_terminal_says_what_takes_long(monkeypatch, caplog):
    caplog.set_level(logging.INFO, "pymc.austerity")
    monkeypatch.setattr(module, "_LONG", 0.01)
    monkeypatch.setattr(module, "_VERY_LONG", 0.01)
    said = [
        "AusterityMH is setting up, which takes a while: finding the posterior mode ...",
        "AusterityMH is still setting up: bounding what rows can change ...",
    ]
    with module.setup_progress("AusterityMH", "finding the posterior mode") as say:
        for n_said, stage in enumerate(
            ("finding the posterior mode", "bounding what rows can change")
        ):
            say(stage)
            for _ in range(500):
                if len(caplog.messages) > n_said:
                    break
                time.sleep(0.01)
        time.sleep(0.1)  # a stage is named once
    assert caplog.messages == said
    monkeypatch.setattr(module, "_LONG", 60.0)
    with module.setup_progress("AusterityMH"):
        pass
    assert caplog.messages == said


def test_a_stage_is_shown_for_the_time_of_a_block(monkeypatch):
    shown = []
    monkeypatch.setattr(module, "Console", lambda **_: Console(force_terminal=False))
    with module.setup_progress("AusterityMH") as say:
        say("compiling")
        monkeypatch.setattr(say, "_show", shown.append)
        with say.shown("trying NUTS"):
            assert say.text == "trying NUTS"
        assert say.text == "compiling"
    assert shown == ["trying NUTS", "compiling"]
    assert list(say.seconds) == ["starting", "compiling", "trying NUTS"]
    assert not module._under_way
