"""Where the progress of set-up is shown."""

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
