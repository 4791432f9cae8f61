"""Sample the models that were not sampled yet, one process each, and write the table."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import examples.hostile_models as example
from examples.hostile_models import (
    cell,
    models,  # noqa: F401  (fills the list)
    references,
    tables,
)
from examples.hostile_models.processes import how_it_ended
from examples.hostile_models.registry import HOSTILE_MODELS, HostileModel
from examples.hostile_models.verdicts import Record

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "hostile_models"
QUICK_RESULTS = ROOT / "examples" / "output" / "hostile_models"
SITE = ROOT / "docs" / "_generated" / "hostile_models.md"

_SECONDS, _SECONDS_OF_REFERENCE = 300, 3_600


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.hostile_models", description=example.__doc__
    )
    parser.add_argument("models", nargs="*", help="all by default")
    parser.add_argument("--again", action="store_true", help="also those that have a result")
    parser.add_argument("--quick", action="store_true", help="short chains; the site stays")
    parser.add_argument("--references", action="store_true", help="only find right answers")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.models) - set(HOSTILE_MODELS))
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(HOSTILE_MODELS)}")
    chosen = [HOSTILE_MODELS[name] for name in options.models or HOSTILE_MODELS]
    if options.references:
        _find_references(chosen, again=options.again)
    else:
        _sample(chosen, again=options.again, quick=options.quick)


def _reference_file(name: str) -> Path:
    return RESULTS / "references" / f"{name}.json"


def _find_references(chosen: Sequence[HostileModel], *, again: bool) -> None:
    _reference_file("").parent.mkdir(parents=True, exist_ok=True)
    for hostile in chosen:
        file = _reference_file(hostile.name)
        if again or not file.exists():
            print(f"{hostile.name} ...", flush=True)
            problem = how_it_ended(_find, hostile, file, seconds=_SECONDS_OF_REFERENCE)
            print(problem, end="")


def _find(hostile: HostileModel, file: Path) -> None:
    references.write(file, references.find(hostile))


def _sample(chosen: Sequence[HostileModel], *, again: bool, quick: bool) -> None:
    folder = QUICK_RESULTS if quick else RESULTS / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    lengths = cell.QUICK if quick else cell.FULL
    for hostile in chosen:
        file = folder / f"{hostile.name}.json"
        if again or not file.exists():
            problem = how_it_ended(_run, hostile, file, lengths, seconds=_SECONDS)
            if problem:
                cell.write(file, Record(error=problem))
        right = references.read(_reference_file(hostile.name))
        print(tables.line(hostile.name, cell.read(file), right), flush=True)
    files = {name: folder / f"{name}.json" for name in HOSTILE_MODELS}
    records = {name: cell.read(file) for name, file in files.items() if file.exists()}
    right = {name: references.read(_reference_file(name)) for name in records}
    if not quick:
        SITE.write_text(tables.table(records, right))
    print(tables.count(records, right))


def _run(hostile: HostileModel, file: Path, lengths: dict[str, int]) -> None:
    cell.write(file, cell.run(hostile, lengths))


if __name__ == "__main__":
    main()
