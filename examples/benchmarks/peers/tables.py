"""The cells as Markdown, ratios first and then every number, and as a table of plain text."""

import csv
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from examples.benchmarks.peers.first import HEADER as FIRST_HEADER
from examples.benchmarks.peers.first import JUDGED_HEADER, first, judged, mark
from examples.benchmarks.peers.promises import promises
from examples.benchmarks.peers.results import (
    APPROXIMATIONS,
    EXACT,
    SHORT,
    Results,
    converged,
    exactness,
    seconds_to_1000,
    seconds_until_known,
    title,
)
from examples.benchmarks.peers.samplers import LABELS, ON_GPU
from examples.benchmarks.peers.verdicts import verdicts


def write(folder: Path, file: Path) -> None:
    """Write the tables of all cells in a folder, and beside them as CSV who is first, and all."""
    results = Results.read(folder)
    file.write_text(markdown(results) + "\n")
    every = [
        [title(model, n_rows), *plain(name, cell, results.errors(model, n_rows, name)), notes(cell)]
        for model, n_rows in results.posteriors
        for name, cell in results.of(model, n_rows).items()
    ]
    as_csv(file.with_suffix(".csv"), ["posterior", *HEADER, "notes"], every)
    whole = [row + rest[1:] for row, rest in zip(first(results), judged(results), strict=True)]
    header = [*FIRST_HEADER, *JUDGED_HEADER[1:]]
    as_csv(file.with_name(f"{file.stem}_first.csv"), header, whole)


def as_csv(file: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table as plain text."""
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerows([header, *rows])


def plain(name: str, cell: dict[str, Any], distance: tuple[float, float] | None) -> Iterator[str]:
    """A row of all numbers, without commas in them."""
    label, kind, *numbers = full_row(name, cell, distance)
    yield from (label, kind, *(each.replace(",", "") for each in numbers))


def markdown(results: Results) -> str:
    """All of it."""
    tables = [
        "### Who is first",
        "Seconds to 1,000 effective draws of the least well sampled parameter, with "
        "compilation, set-up and tuning; of other samplers the fastest of each kind. Those on a "
        "GPU ran on another machine.",
        table(FIRST_HEADER, list(first(results)), text={0, 2, 3, 4, 5}),
        "### Approximations",
        "Right ones with the seconds until they are there, wrong ones with their largest errors: "
        "of a mean in sds, of an sd in percent; k is the Pareto k of weights.",
        table(
            JUDGED_HEADER, [row for row in judged(results) if set(row[1:]) != {"-"}], text={0, 1, 2}
        ),
        "### Ratios",
        "How many times better the defaults of AusterityMH do: in effective draws a second "
        "after tuning (median over the parameters) / in the time to 1,000 effective draws of "
        "the least well sampled parameter, with compilation, set-up and tuning. Below 1 the "
        "other sampler is the better one. With a GPU, machines are compared too.",
        *ratios(results),
    ]
    if any("†" in text for text in tables):
        tables.append(
            "† measured on a machine of another speed than the cell of AusterityMH(), or of "
            "unknown speed."
        )
    return "\n\n".join(
        [
            provenance(results),
            *tables,
            "### Bars",
            table(["", "measured", "bar"], promises(results)),
            "### The paper's setting against exact sampling",
            "\n".join(f"- {sentence}" for sentence in verdicts(results)),
            "### Every number",
            *everything(results),
        ]
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], text: Container[int] = (0,)) -> str:
    """A Markdown table; all columns but those of text are numbers."""
    lines = ["| " + " | ".join(header) + " |"]
    marks = ("---" if k in text else "---:" for k in range(len(header)))
    lines.append("| " + " | ".join(marks) + " |")
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def provenance(results: Results) -> str:
    """Dates and versions, of all but the reference, which is a number that they do not change."""
    cells = [cell for key, cell in results.cells.items() if key[2] != "reference"]
    on_gpu = [cell for cell in cells if cell["sampler"] in ON_GPU]
    others = [cell for cell in cells if cell["sampler"] not in ON_GPU]
    told = [f"Measured on one core with one thread, {circumstances_of(others)}."] if others else []
    if on_gpu:
        names = {cell.get("facts", {}).get("gpu") for cell in on_gpu} - {None}
        which = ", ".join(sorted(names)) or "a GPU"
        told.append(f"On {which}, time on the wall, {circumstances_of(on_gpu)}.")
    return "\n\n".join(told)


def circumstances_of(cells: Sequence[dict[str, Any]]) -> str:
    """Dates, versions and revisions of cells; all that were found, if they are several."""
    dates = sorted({cell["date"] for cell in cells})
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    pairs = dict.fromkeys(pair for cell in cells for pair in cell["versions"].items())
    found = {name: sorted({v for n, v in pairs if n == name}) for name, _ in pairs}
    listed = ", ".join(f"{name} {' and '.join(versions)}" for name, versions in found.items())
    python = " and ".join(sorted({cell["python"] for cell in cells}))
    revision = ", ".join(sorted({cell["revision"] for cell in cells}))
    return f"{span}: Python {python}, {listed}; this package at revision {revision}"


def number(value: float | None) -> str:
    """Three significant digits.

    Examples
    --------
    >>> number(12345.6), number(0.012345), number(None)
    ('12,300', '0.0123', '-')
    """
    if value is None:
        return "-"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


RATIOS = {
    "Other samplers of this package": ("exact", "sequential", "firefly", "paper"),
    "All rows": (
        "metropolis",
        "demetropolis_z",
        "pymc_nuts",
        "nutpie",
        "nutpie_low_rank",
        "numpyro_nuts",
        "mams",
    ),
    "Some of the rows": ("hmcecs", "sgld_cv", "sghmc_cv"),
    "pymhss": ("pymhss_mhss", "pymhss_smh", "pymhss_tuna", "pymhss_rwm"),
    "On a GPU": ON_GPU,
}
"""Tables of ratios, each narrow enough for a page."""


def ratios(results: Results) -> Iterator[str]:
    """Ours against each peer; speed and time to 1,000 effective draws."""
    for heading, names in RATIOS.items():
        peers = [name for name in names if any(key[2] == name for key in results.cells)]
        rows = []
        for model, n_rows in results.posteriors:
            ours = results.get(model, n_rows, "ours")
            if ours is None:
                continue
            found = [ratio(ours, results.of(model, n_rows).get(name)) for name in peers]
            if any(cell != " " for cell in found):
                rows.append([title(model, n_rows), *found])
        if rows:
            yield f"**{heading}**"
            yield table(["speed / time to 1,000", *(LABELS[name] for name in peers)], rows)


def ratio(ours: dict[str, Any], peer: dict[str, Any] | None) -> str:
    """Two ratios, both larger than 1 where ours is better."""
    if peer is None:
        return " "
    if "failed" in peer:
        return f"no draws in {peer['limit_seconds']:.0f} s"
    if not converged(peer):
        return "not converged"
    theirs = seconds_to_1000(peer)
    speed = ours["ess_per_second_median"] / peer["ess_per_second_median"]
    return f"{number(speed)} / {number(theirs / seconds_to_1000(ours))}{mark(ours, peer)}"


HEADER = (
    "sampler",
    "exact",
    "set-up s",
    "compile s",
    "tuning s",
    "ESS/s median",
    "ESS/s least",
    "s to 1,000 ESS, or in all",
    "rows a decision or gradient",
    "of these a draw",
    "error of means, sds",
    "error of sds, %",
    "peak MB",
)


def everything(results: Results) -> Iterator[str]:
    """One table for each posterior, and below it what a reader must know."""
    for model, n_rows in results.posteriors:
        yield f"#### {title(model, n_rows)}"
        truth = results.get(model, n_rows, "reference")
        if truth is not None:
            yield (
                f"Reference: {truth['n_points']:,} points of importance sampling with all rows "
                f"{truth.get('points', 'about the mode')}, Pareto k {truth['pareto_k']:.2f}; its "
                f"own standard errors are at most {max(truth['mean_error']):.3f} sds for means and "
                f"{100 * max(truth['sd_error']):.2f} % for sds."
            )
        else:
            yield "**No reference: the errors are not known.**"
        cells = results.of(model, n_rows)
        rows = [full_row(name, cells[name], results.errors(model, n_rows, name)) for name in cells]
        yield table(HEADER, rows, text={0, 1})
        told = [f"- {LABELS[name]}: {words}" for name in cells if (words := notes(cells[name]))]
        if told:
            yield "\n".join(told)


def full_row(
    name: str, cell: dict[str, Any], distance: tuple[float, float] | None
) -> Sequence[str]:
    """One sampler on one posterior."""
    if "failed" in cell:
        return [LABELS[name], exactness(cell), *[""] * 10, number(cell["peak_mb"])]
    measured = [
        cell["setup_seconds"],
        cell["compile_seconds"],
        cell["tuning_seconds"],
        cell["ess_per_second_median"],
        cell["ess_per_second_min"],
        seconds_until_known(cell),
        cell["rows_per_evaluation"],
        cell["evaluations_per_draw"],
    ]
    off = ["", ""] if distance is None else [number(distance[0]), number(100 * distance[1])]
    numbers = [*map(number, measured), *off, number(cell["peak_mb"])]
    return [LABELS[name], exactness(cell), *numbers]


def notes(cell: dict[str, Any]) -> str:
    """What a reader must know about a cell; of an error its first line."""
    if "failed" in cell:
        return cell["failed"].split(": ", 1)[-1].splitlines()[0]
    if cell["sampler"] in APPROXIMATIONS:
        k = cell["facts"].get("pareto_k")
        return "" if k is None else f"reports a Pareto k of {k:.2f}"
    found = []
    if cell["stopped_early"]:
        found.append(f"stopped after {cell['n_draws']:,} draws")
    if cell["tuning_share"] < 1.0:
        found.append(f"{100 * cell['tuning_share']:.0f} % of the tuning, its time extrapolated")
    if cell["n_draws"] < SHORT:
        found.append("time to 1,000 from the median")
    if cell["ess_min"] < 1_000:
        found.append(f"extrapolated from {number(cell['ess_min'])} effective draws of the least")
    if not converged(cell):
        found.append("**has not converged: speed and errors mean nothing**")
    elif cell["sampler"] in EXACT and cell["n_draws"] < 1_000:
        found.append("too short to judge its errors")
    return "; ".join(found)
