"""Ctrl-C keeps what was drawn."""

import importlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from pymc_austerity.step_methods.interrupts import (
    clean_interrupt,
    defer_interrupts,
    restore_interrupts,
)
from tests.running import START_METHODS, built, sample
from tests.step_methods.models import normal_mean

REPOSITORY = Path(__file__).parents[2]

WAYS = [("sequential", 5, "all"), (START_METHODS[0], 3, "few"), (START_METHODS[0], 5, "all")]
# processes that begin with an import take seconds
MANY = {"sequential": 100, "fork": 100}
WAYS += [(context, MANY.get(context, 15), "few") for context in ("sequential", *START_METHODS)]
needs_groups = pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes")


@needs_groups
@pytest.mark.few(f"{START_METHODS[0]}-3-few")
@pytest.mark.parametrize(("context", "n_trials", "rows"), WAYS)
def test_no_draws_are_lost(context, n_trials, rows):
    """Signals come from another process at random times, many of them in compiled code."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.step_methods.interrupted", context, str(n_trials), rows],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        start_new_session=True,  # the signal is for the whole process group
    )
    assert json.loads(done.stdout) == {"kept": n_trials}, done.stderr


def sample_and(act, **arguments):
    """Sample, and do something in the callback of a draw, after which the loop goes on."""

    def callback(trace, draw):
        if draw.draw_idx == 20:
            act()

    model, settings = normal_mean(), {"draws": 50, "tune": 0, "chains": 1, "quiet": False}
    step = built(model, batch_size=100)
    return sample(step, model, callback=callback, **(settings | arguments))


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_the_draw_at_hand_is_the_last():
    assert sample_and(interrupt).posterior.sizes["draw"] == 21


def test_the_second_interrupt_takes_effect_at_once():
    after = []

    def twice():
        interrupt()
        after.append("first")
        interrupt()
        after.append("second")

    sample_and(twice)
    assert after == ["first"]


def test_an_interrupt_while_a_draw_is_stored_comes_back():
    """In parallel runs the process that collects the draws runs no step of ours."""

    stored = []
    namespace = {"__name__": "pymc.backends.ndarray", "interrupt": interrupt, "stored": stored}
    exec(compile("def record():\n    interrupt()\n    stored.append(True)", "", "exec"), namespace)

    def store_and_wait():
        namespace["record"]()
        time.sleep(10)

    defer_interrupts()
    try:
        with pytest.raises(KeyboardInterrupt):
            store_and_wait()
        assert stored == [True]
    finally:
        restore_interrupts()


def test_handlers_are_restored_when_sampling_ends():
    before = signal.getsignal(signal.SIGINT)
    sample_and(lambda: None)
    assert signal.getsignal(signal.SIGINT) is before


def test_short_chains_of_set_up_leave_no_trace():
    """Where an earlier chain left its own handler, too."""

    @clean_interrupt
    def set_up():
        defer_interrupts()
        restore_interrupts()

    before = signal.getsignal(signal.SIGINT)
    defer_interrupts()
    set_up()
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_user_is_called_outside_of_the_loop():
    calls = []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        step = built(normal_mean(), batch_size=100)
        step.set_rng(1)
        interrupt()
        assert calls == [signal.SIGINT]
    finally:
        restore_interrupts()
        signal.signal(signal.SIGINT, before)


def test_threads_without_signals_sample_all_the_same():
    before, results = signal.getsignal(signal.SIGINT), []
    thread = threading.Thread(target=lambda: results.append(sample_and(lambda: None)))
    thread.start()
    thread.join()
    assert results[0].posterior.sizes["draw"] == 50
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_in_compiled_code_leaves_set_up_as_an_interrupt():
    @clean_interrupt
    def set_up():
        try:
            interrupt()
        except KeyboardInterrupt:
            raise SystemError("a result with an exception set") from None

    with pytest.raises(KeyboardInterrupt):
        set_up()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_a_finalizer_swallows_ends_set_up():
    class Finalized:
        def __del__(self):
            interrupt()

    before, after = signal.getsignal(signal.SIGINT), []

    @clean_interrupt
    def set_up():
        Finalized()
        after.append("goes on")

    with pytest.raises(KeyboardInterrupt):
        set_up()
    assert after == ["goes on"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_module_that_is_being_imported_is_imported_whole(tmp_path, monkeypatch):
    body = "import signal, time\nsignal.raise_signal(signal.SIGINT)\ntime.sleep(0.1)\nwhole = True"
    (tmp_path / "interrupted_while_imported.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)

    @clean_interrupt
    def set_up():
        importlib.import_module("interrupted_while_imported")
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        set_up()
    assert sys.modules.pop("interrupted_while_imported").whole


def test_an_interrupt_that_the_user_handles_does_not_end_set_up():
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        assert clean_interrupt(lambda: interrupt() or "done")() == "done"
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_other_errors_of_the_system_pass():
    @clean_interrupt
    def set_up():
        raise SystemError("something else")

    with pytest.raises(SystemError, match="something else"):
        set_up()


@needs_groups
@pytest.mark.slow
def test_set_up_can_be_interrupted():
    script = """
        import os, subprocess, time
        from pymc_austerity import AusterityMH
        from tests.step_methods.models import normal_regression
        outcomes = []
        for trial in range(6):
            with normal_regression():
                command = f"sleep {0.05 + 0.1 * trial}; kill -INT {os.getpid()}"
                try:
                    killer = subprocess.Popen(["sh", "-c", command], start_new_session=True)
                    AusterityMH()
                    killer.wait()
                    time.sleep(0.2)  # the signal is handled between two bytecodes
                except KeyboardInterrupt:
                    outcomes.append("interrupted")
        assert len(outcomes) == 6, outcomes
        """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)]
    subprocess.run(command, cwd=REPOSITORY, check=True, start_new_session=True)
