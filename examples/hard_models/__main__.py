"""Sample the models that were not sampled yet, one process each, and write the table."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import examples.hard_models as example
from examples.hard_models import (
    cell,
    models,  # noqa: F401  (fills the list)
    references,
    tables,
)
from examples.hard_models.processes import how_it_ended
from examples.hard_models.registry import HARD_MODELS, HardModel
from examples.hard_models.verdicts import Record

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "hard_models"
QUICK_RESULTS = ROOT / "examples" / "output" / "hard_models"
SITE = ROOT / "docs" / "_generated" / "hard_models.md"

_SECONDS, _SECONDS_OF_REFERENCE = 300, 3_600


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.hard_models", description=example.__doc__
    )
    parser.add_argument("models", nargs="*", help="all by default")
    parser.add_argument("--again", action="store_true", help="also those that have a result")
    parser.add_argument("--quick", action="store_true", help="short chains; the site stays")
    parser.add_argument("--references", action="store_true", help="only find right answers")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.models) - set(HARD_MODELS))
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(HARD_MODELS)}")
    chosen = [HARD_MODELS[name] for name in options.models or HARD_MODELS]
    if options.references:
        _find_references(chosen, again=options.again)
    else:
        _sample(chosen, again=options.again, quick=options.quick)


def _reference_file(name: str) -> Path:
    return RESULTS / "references" / f"{name}.json"


def _find_references(chosen: Sequence[HardModel], *, again: bool) -> None:
    _reference_file("").parent.mkdir(parents=True, exist_ok=True)
    for hard in chosen:
        file = _reference_file(hard.name)
        if again or not file.exists():
            print(f"{hard.name} ...", flush=True)
            problem = how_it_ended(_find, hard, file, seconds=_SECONDS_OF_REFERENCE)
            print(problem, end="")


def _find(hard: HardModel, file: Path) -> None:
    references.write(file, references.find(hard))


def _sample(chosen: Sequence[HardModel], *, again: bool, quick: bool) -> None:
    folder = QUICK_RESULTS if quick else RESULTS / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    lengths = cell.QUICK if quick else cell.FULL
    for hard in chosen:
        file = folder / f"{hard.name}.json"
        if again or not file.exists():
            problem = how_it_ended(_run, hard, file, lengths, seconds=_SECONDS)
            if problem:
                cell.write(file, Record(error=problem))
        right = references.read(_reference_file(hard.name))
        print(tables.line(hard.name, cell.read(file), right), flush=True)
    files = {name: folder / f"{name}.json" for name in HARD_MODELS}
    records = {name: cell.read(file) for name, file in files.items() if file.exists()}
    right = {name: references.read(_reference_file(name)) for name in records}
    if not quick:
        SITE.write_text(tables.table(records, right))
    print(tables.count(records, right))


def _run(hard: HardModel, file: Path, lengths: dict[str, int]) -> None:
    cell.write(file, cell.run(hard, lengths))


if __name__ == "__main__":
    main()
