"""Measurements as tables: on the console, and as a page of the site."""

import datetime
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

PACKAGES = ("pymc", "pytensor", "numba", "numpy")


@dataclass(frozen=True)
class Measurement:
    """One number.

    Attributes
    ----------
    what : str
        What was measured.
    value : float
        The number.
    unit : str
        Its unit; empty for ratios, which do not depend on the speed of the machine.
    bar : float, optional
        What the value should stay below.
    """

    what: str
    value: float
    unit: str = ""
    bar: float | None = None

    @property
    def cells(self) -> tuple[str, str, str]:
        """What, value and bar, as text."""
        unit = f" {self.unit}" if self.unit else " x"
        bar = "" if self.bar is None else f"{self.bar:g}{unit}"
        return self.what, f"{self.value:,.2f}{unit}", bar

    @property
    def missed(self) -> bool:
        """Whether the value is above its bar."""
        return self.bar is not None and self.value > self.bar


def console_table(groups: dict[str, Sequence[Measurement]]) -> Table:
    """All measurements in one table."""
    table = Table("", "measured", "bar")
    for column in table.columns[1:]:
        column.justify = "right"
    for title, measurements in groups.items():
        table.add_section()
        table.add_row(f"[bold]{title}")
        for measurement in measurements:
            table.add_row(*measurement.cells, style="red" if measurement.missed else None)
    return table


def show(groups: dict[str, Sequence[Measurement]]) -> None:
    """Print the table."""
    Console().print(console_table(groups))


def markdown_tables(groups: dict[str, Sequence[Measurement]]) -> str:
    """Two tables: ratios first, then what depends on the machine."""
    everything = [(title, entry) for title, entries in groups.items() for entry in entries]
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return "\n\n".join(
        [
            f"Measured on {datetime.date.today():%d %B %Y} with Python "
            f"{platform.python_version()}, {versions}, on one core.",
            markdown_table([(title, entry) for title, entry in everything if not entry.unit]),
            markdown_table([(title, entry) for title, entry in everything if entry.unit]),
        ]
    )


def markdown_table(entries: Sequence[tuple[str, Measurement]]) -> str:
    """One table of measurements with their titles, which stand where they change."""
    lines = ["| measurement | | measured | bar |", "| --- | --- | ---: | ---: |"]
    previous = None
    for title, entry in entries:
        lines.append(f"| {title if title != previous else ''} | {' | '.join(entry.cells)} |")
        previous = title
    return "\n".join(lines)
