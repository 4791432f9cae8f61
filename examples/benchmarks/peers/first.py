"""Which sampler is first on each posterior, and which approximations are right there."""

from collections.abc import Iterator
from typing import Any

from examples.benchmarks.peers.results import (
    APPROXIMATIONS,
    OURS,
    Results,
    converged,
    exactness,
    same_machine,
    seconds_until_known,
    title,
)
from examples.benchmarks.peers.samplers import LABELS, ON_GPU

RIGHT_MEAN, RIGHT_SD = 0.15, 0.10
"""Largest errors of an approximation that is right: 1,000 draws of 20 parameters err by less."""

OF_FIXED_LENGTH = ("laps_gpu",)
"""Samplers with one draw of each chain, which show nothing if they were too short."""

HEADER = (
    "posterior",
    "AusterityMH(), s",
    "its decisions",
    "other exact sampler, s",
    "approximate sampler, s",
    "sampler on a GPU, s",
)
JUDGED_HEADER = ("posterior", "right, s", "wrong: means, sds")


def first(results: Results) -> Iterator[tuple[str, ...]]:
    """One row for each posterior."""
    for model, n_rows, ours in posteriors(results):
        seconds = seconds_until_known(ours)
        yield (
            title(model, n_rows),
            "-" if seconds is None else f"{seconds:,.0f}",
            {"yes": "exact", "": "-"}.get(exactness(ours), "t-test"),
            peer(results, model, n_rows, ours, exact=True),
            peer(results, model, n_rows, ours, exact=False),
            on_gpu(results, model, n_rows),
        )


def judged(results: Results) -> Iterator[tuple[str, ...]]:
    """One row for each posterior: approximations that are right there, and others."""
    for model, n_rows, ours in posteriors(results):
        right, wrong = approximations(results, model, n_rows, ours)
        yield title(model, n_rows), "; ".join(right) or "-", "; ".join(wrong) or "-"


def posteriors(results: Results) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Those that the defaults of this package were run on, and that cell."""
    for model, n_rows in results.posteriors:
        if (ours := results.get(model, n_rows, "ours")) is not None:
            yield model, n_rows, ours


def peer(results: Results, model: str, n_rows: int, ours: dict[str, Any], *, exact: bool) -> str:
    """The sampler of another package with the first 1,000 effective draws."""
    were_run = {
        name: cell
        for name, cell in results.of(model, n_rows).items()
        if name not in (*OURS, *APPROXIMATIONS, *ON_GPU) and (exactness(cell) == "yes") == exact
    }
    if (earliest := _earliest(were_run)) is None:
        return "none converged" if were_run else "-"
    name, seconds = earliest
    return f"{LABELS[name]}: {seconds:,.0f}{mark(ours, were_run[name])}"


def on_gpu(results: Results, model: str, n_rows: int) -> str:
    """The sampler on a graphics processor with the first 1,000 effective draws."""
    every = {n: cell for n, cell in results.of(model, n_rows).items() if n in ON_GPU}
    right = {
        name: cell
        for name, cell in every.items()
        if name not in OF_FIXED_LENGTH or is_right(results.errors(model, n_rows, name))
    }
    if (earliest := _earliest(right)) is None:
        return "none" if every else "-"
    name, seconds = earliest
    return f"{LABELS[name].removesuffix(', GPU')}: {seconds:,.0f}"


def _earliest(cells: dict[str, dict[str, Any]]) -> tuple[str, float] | None:
    """Of those that have converged the first with 1,000 effective draws, and its seconds."""
    found = {
        name: seconds
        for name, cell in cells.items()
        if "failed" not in cell
        and converged(cell)
        and (seconds := seconds_until_known(cell)) is not None
    }
    return min(found.items(), key=lambda item: item[1]) if found else None


def approximations(
    results: Results, model: str, n_rows: int, ours: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Those within the limits with their seconds, and the others with their errors."""
    right, wrong = [], []
    for name in APPROXIMATIONS:
        cell = results.get(model, n_rows, name)
        errors = results.errors(model, n_rows, name)
        if cell is None:
            if (failed := results.cells.get((model, n_rows, name))) is not None:
                wrong.append(f"{short(name)} failed: {failed['failed'].split(':')[0]}")
            continue
        if errors is None:
            continue
        of_mean, of_sd = errors
        if is_right(errors):
            right.append(f"{short(name)}: {seconds_until_known(cell):,.0f}{mark(ours, cell)}")
        else:
            k = cell["facts"].get("pareto_k")
            told = "" if k is None else f" (k {k:.2f})"
            wrong.append(f"{short(name)}: {of_mean:.2g}, {100 * of_sd:.0f} %{told}")
    return right, wrong


def short(name: str) -> str:
    """Label of an approximation without the package that it is from.

    Examples
    --------
    >>> short("laplace_newton"), short("advi")
    ('Laplace, trust-ncg', 'ADVI')
    """
    label = LABELS[name].replace(" (pymc-extras)", "")
    return label.removeprefix("PyMC ").removesuffix(", mini-batches")


def is_right(errors: tuple[float, float] | None) -> bool:
    """Whether the largest errors, of a mean in sds and of an sd as a share, are known and small."""
    return errors is not None and errors[0] <= RIGHT_MEAN and errors[1] <= RIGHT_SD


def mark(ours: dict[str, Any], cell: dict[str, Any]) -> str:
    """A dagger at what was measured at another speed; columns of a GPU say that they are."""
    return "" if cell["sampler"] in ON_GPU or same_machine(ours, cell) else "†"
