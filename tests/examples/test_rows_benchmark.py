"""The benchmark of rows that stay where they are keeps what it measured."""

from typing import Any

import pytest

from examples.benchmarks import rows, rows_kept
from examples.benchmarks.report import Measurement


@pytest.fixture
def folder(tmp_path: Any, monkeypatch: Any) -> Any:
    """Where the numbers go."""
    monkeypatch.setattr(rows_kept, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(rows, "SITE", tmp_path / "rows.md")
    return tmp_path


def _part(name: str, n_rows: int, _: str | None) -> Any:
    return f"{name}, {n_rows}", [Measurement("peak", 2.0, "MB", 3.0), Measurement("ratio", 1.5)]


def _run(monkeypatch: Any, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["rows", *arguments])
    rows.main()


def test_parts_measured_in_full_are_kept_and_not_measured_again(folder, monkeypatch, capsys):
    monkeypatch.setattr(rows, "PARTS", {"one": _part, "other": _part})
    _run(monkeypatch, "one")
    _run(monkeypatch)
    assert capsys.readouterr().out.count("one, 50000000") == 1
    table = (folder / "rows.md").read_text().splitlines()
    assert table[2] == "| one, 50000000 | peak | 2.00 MB | 3 MB |"
    assert table[3] == "|  | ratio | 1.50 x |  |"
    assert table[4].startswith("| other, 50000000 |")
    assert table[-1].startswith("Measured on ")


def test_small_runs_leave_no_trace(folder, monkeypatch):
    monkeypatch.setattr(rows, "PARTS", {"one": _part})
    _run(monkeypatch, "one", "--rows", "1000")
    assert list(folder.iterdir()) == []
