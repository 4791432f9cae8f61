"""Sample the models of a folder that were not sampled yet, and write the table."""

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import examples.catalogue as example
from examples.catalogue.kinds import has_even_name
from examples.catalogue.run import Run, is_mixed, read, run, write
from examples.catalogue.verdicts import KINDS, SLOWER, is_slow, kind

ROOT = Path(__file__).parents[2]
_SECONDS = 300


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.catalogue", description=example.__doc__
    )
    parser.add_argument("path", type=Path, help="folder with files that have build_model()")
    parser.add_argument("models", nargs="*", help="names of files without .py; all by default")
    parser.add_argument("--even", action="store_true", help="names with an even number of letters")
    parser.add_argument("--again", action="store_true", help="ours also where there is a result")
    parser.add_argument("--seconds", type=int, default=_SECONDS, help="processor time of a run")
    parser.add_argument("--out", type=Path, default=ROOT / "examples" / "output" / "catalogue")
    parser.add_argument("--one", metavar="SAMPLER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    files = _files(options.path, options.models, even=options.even)
    if options.one:
        run(files[0], options.out, options.one)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    pairs = {}
    for file in files:
        ours = _result(file, "ours", options, again=options.again)
        nuts = _result(file, "nuts", options, again=False)
        pairs[file.stem] = ours, nuts
        print(_line(file.stem, ours, nuts), flush=True)
    print(_table(pairs))


def _files(folder: Path, names: Sequence[str], *, even: bool) -> list[Path]:
    files = sorted(folder.glob("*.py"))
    unknown = sorted(set(names) - {file.stem for file in files})
    if unknown:
        raise SystemExit(f"{folder} has no models {', '.join(unknown)}.")
    if even:
        files = list(filter(has_even_name, files))
    return [file for file in files if not names or file.stem in names]


def _result(file: Path, sampler: str, options: argparse.Namespace, *, again: bool) -> Run:
    out = options.out / f"{file.stem}.{sampler}.json"
    if again or not out.exists():
        out.unlink(missing_ok=True)
        own = [str(file.parent), file.stem, "--one", sampler, "--out", str(out)]
        limited = f"ulimit -t {options.seconds}; exec {sys.executable} -m examples.catalogue"
        ended = subprocess.run(
            ["bash", "-c", f'{limited} "$@"', "bash", *own],
            cwd=ROOT,
            env=os.environ | _environment(options.out / f"cache-{sampler}"),
            capture_output=True,
            text=True,
            check=False,
        )
        if not out.exists():
            last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
            out_of_time = ended.returncode in (-9, -24, 137, 152)
            write(out, Run(error=f"time: {options.seconds} s" if out_of_time else last[:500]))
    return read(out)


def _environment(cache: Path) -> dict[str, str]:
    """One thread, and caches of compiled code that the other sampler does not fill."""
    return {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTENSOR_FLAGS": f"base_compiledir={cache.absolute()}",
        "NUMBA_CACHE_DIR": str(cache.absolute()),
    }


def _line(name: str, ours: Run, nuts: Run) -> str:
    slow = f", {ours.seconds / nuts.seconds:.1f} x" if is_slow(ours, nuts) else ""
    reference = f"NUTS {nuts.seconds:.0f} s, r_hat {nuts.r_hat:.2f}, ess {nuts.ess:.0f}"
    if nuts.error:
        reference = f"NUTS: {nuts.error[:60]}"
    why = ours.error or ours.reason
    return (
        f"{name}: {kind(ours, nuts)}{slow} | {ours.path} {ours.seconds:.0f} s, "
        f"r_hat {ours.r_hat:.2f}, ess {ours.ess:.0f} | {reference} | {why[:160]}"
    )


def _table(pairs: dict[str, tuple[Run, Run]]) -> str:
    """Counts of all models, and of those that NUTS samples."""
    of_nuts = [pair for pair in pairs.values() if is_mixed(pair[1])]
    rows = []
    for chosen in (list(pairs.values()), of_nuts):
        counts = Counter(kind(*pair) for pair in chosen)
        slow = sum(is_slow(*pair) for pair in chosen)
        too_slow = sum(is_slow(*pair, times=1.5, more=2.0) for pair in chosen)
        rows.append([len(chosen), *(counts[name] for name in KINDS), slow, too_slow])
    head = ["models", *KINDS, f"slower than {SLOWER} x NUTS", "than 1.5 x NUTS plus 2 s"]
    lines = [
        f"{title:>28}  {total:>6}  {sampled:>14}"
        for title, total, sampled in zip(
            ["", *head], ["all", *rows[0]], ["sampled by NUTS", *rows[1]], strict=True
        )
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
