"""Columns of PyMC's progress display."""

from collections.abc import Callable
from typing import Any

from rich.progress import TextColumn
from rich.table import Column

__all__ = ["columns", "running_averages"]

_MEMORY = 100
"""The columns show averages over about this many draws of all the chains."""


def columns(n_chains: int) -> tuple[list[TextColumn], dict[str, list[float]]]:
    """Columns for the acceptance rate and the rows of a draw, and their initial values."""
    texts = [
        TextColumn("{task.fields[acceptance]:.2f}", table_column=Column("Acceptance", ratio=1)),
        TextColumn("{task.fields[rows]:,.0f}", table_column=Column("Rows read", ratio=1)),
    ]
    return texts, {"acceptance": [0.0] * n_chains, "rows": [0.0] * n_chains}


def running_averages() -> Callable[[dict[str, Any]], dict[str, float]]:
    """Function that maps the statistics of a step to the values of the columns."""
    n_seen, acceptance, rows = 0, 0.0, 0.0

    def update(statistics: dict[str, Any]) -> dict[str, float]:
        nonlocal n_seen, acceptance, rows
        n_seen += 1
        weight = 1.0 / min(n_seen, _MEMORY)
        acceptance += weight * (statistics["accepted"] - acceptance)
        rows += weight * (statistics["n_rows_used"] - rows)
        return {"acceptance": acceptance, "rows": rows}

    return update
