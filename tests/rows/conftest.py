"""What the tests of stored rows share."""

import multiprocessing.util

import pytest


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    multiprocessing.util.get_temp_dir()  # used until this process ends, when the test's is gone
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path
