"""What all tests share."""

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pymc_austerity.step_methods import austerity_mh
from tests.running import START_METHODS, WANTED

if WANTED:
    multiprocessing.set_start_method(START_METHODS[0], force=True)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng() -> np.random.Generator:
    """The same random numbers for every test and every run."""
    return np.random.default_rng(20140621)


@pytest.fixture(autouse=True)
def level_of_the_log() -> None:
    """What PyMC sets when it is imported; programs in examples set another one."""
    logging.getLogger("pymc").setLevel(logging.INFO)


@pytest.fixture(scope="session", autouse=True)
def chooses_nuts() -> Iterator[Callable[..., bool]]:
    """Let ``AusterityMH()`` be a step method of this package however few rows there are."""
    with pytest.MonkeyPatch.context() as patch:
        chooses = austerity_mh.leaves_the_choice
        patch.setattr(austerity_mh, "leaves_the_choice", lambda request, **_: False)
        yield chooses


@pytest.fixture(autouse=True)
def choice_of_sampler(request: pytest.FixtureRequest, chooses_nuts: Callable[..., bool]) -> None:
    """Tests with the mark `choice` are about the choice between these and PyMC's NUTS."""
    if request.node.get_closest_marker("choice"):
        patch = request.getfixturevalue("monkeypatch")
        patch.setattr(austerity_mh, "leaves_the_choice", chooses_nuts)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets; without it the test is skipped."""
    folder = os.environ.get("PYMC_AUSTERITY_DATA")
    if not folder:
        pytest.skip("PYMC_AUSTERITY_DATA does not name a folder of data sets")
    if not Path(folder).is_dir():
        pytest.skip(f"PYMC_AUSTERITY_DATA names {folder}, which is not a folder")
    return Path(folder)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the cases that a mark `few` does not name into the exhaustive tier."""
    unknown: dict[str, set[str]] = {}
    for item in items:
        few = item.get_closest_marker("few")
        if few:
            case = item.callspec.id
            unknown.setdefault(item.nodeid.partition("[")[0], set(few.args)).discard(case)
            if case not in few.args:
                item.add_marker("exhaustive")
    if not any("::" in argument for argument in config.args):  # all cases of a test, or none
        for test, names in unknown.items():
            if names:
                raise pytest.UsageError(f"{test} has no cases {sorted(names)}")
