"""Sample the families that were not sampled yet, one process each, and write the table."""

import argparse
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import examples.families as example
from examples.families import (
    cell,
    models,  # noqa: F401  (fills the list)
    tables,
)
from examples.families.registry import FAMILIES, Family
from examples.hard_models.cell import read, write
from examples.hard_models.processes import how_it_ended
from examples.hard_models.verdicts import Record

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "families"
QUICK_RESULTS = ROOT / "examples" / "output" / "families"
SITE = ROOT / "docs" / "_generated" / "families.md"

_SECONDS = 900
"""Of processor time, for one run."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.families", description=example.__doc__
    )
    parser.add_argument("families", nargs="*", help="all by default")
    parser.add_argument("--again", action="store_true", help="also those that have a result")
    parser.add_argument("--quick", action="store_true", help="short chains; the site stays")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.families) - set(FAMILIES))
    if unknown:
        parser.error(f"no such family: {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    folder = QUICK_RESULTS if options.quick else RESULTS
    lengths = cell.QUICK if options.quick else cell.FULL
    for name in options.families or FAMILIES:
        _sample(FAMILIES[name], folder, lengths, again=options.again)
    records = [_kept(folder / kind) for kind in ("austerity", "nuts", "known")]
    if not options.quick:
        SITE.write_text(tables.table(*records))
    print(tables.count(*records))


def _sample(family: Family, folder: Path, lengths: cell.Lengths, *, again: bool) -> None:
    if family.needs and find_spec(family.needs) is None:
        print(f"{family.name}: left out, {family.needs} is not installed")
        return
    ours = _kept_or_run(cell.run_austerity, family, folder / "austerity", lengths, again)
    nuts = known = None
    if not ours.error:
        nuts = _kept_or_run(cell.run_nuts, family, folder / "nuts", lengths, again)
        if family.reference is not None:
            known = _kept_or_run(cell.run_reference, family, folder / "known", lengths, again)
    print(tables.line(family, ours, nuts, known), flush=True)


def _kept_or_run(
    run: Callable[[Family, cell.Lengths], Record],
    family: Family,
    folder: Path,
    lengths: cell.Lengths,
    again: bool,
) -> Record:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{family.name}.json"
    if again or not file.exists():
        problem = how_it_ended(_write, run, family, file, lengths, seconds=_SECONDS)
        if problem:
            write(file, Record(error=problem))
    return read(file)


def _write(run: Callable, family: Family, file: Path, lengths: cell.Lengths) -> None:
    write(file, run(family, lengths))


def _kept(folder: Path) -> dict[str, Record]:
    files = {name: folder / f"{name}.json" for name in FAMILIES}
    return {name: read(file) for name, file in files.items() if file.exists()}


if __name__ == "__main__":
    main()
