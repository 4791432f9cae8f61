"""Sample the models of a folder that were not sampled yet, and write the table."""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pymc as pm

import examples.catalogue as example
from examples.catalogue import tables
from examples.catalogue.kinds import has_even_name
from examples.catalogue.run import Run, is_mixed, read, run, write
from examples.catalogue.verdicts import KINDS, is_slow, kind

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "catalogue"
SITE = ROOT / "docs" / "_generated" / "catalogue.md"
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
    parser.add_argument("--seeds", type=int, default=1, help="runs of what NUTS alone samples well")
    parser.add_argument("--seconds", type=int, default=_SECONDS, help="processor time of a run")
    parser.add_argument("--site", action="store_true", help="write the table of the site, too")
    parser.add_argument("--out", type=Path, default=ROOT / "examples" / "output" / "catalogue")
    parser.add_argument("--one", metavar="SAMPLER", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    files = _files(options.path.absolute(), options.models, even=options.even)
    if options.one:
        run(files[0], options.out, options.one, options.seed)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    pairs = {}
    for file in files:
        pairs[file.stem] = list(_pairs(file, options))
        for pair in pairs[file.stem]:
            print(_line(file.stem, *pair), flush=True)
    rows = tables.rows_of(pairs)
    print(tables.counts(rows))
    if options.site:
        tables.write(RESULTS / f"{pm.__version__}.json", rows)
        versions = {file.stem: tables.read(file) for file in sorted(RESULTS.glob("*.json"))}
        SITE.write_text(tables.page(versions))


def _pairs(file: Path, options: argparse.Namespace) -> Iterator[tuple[Run, Run]]:
    """Results of ours and of NUTS, of several seeds if that of the first speaks against ours."""
    for seed in range(1, options.seeds + 1):
        ours = _result(file, "ours", seed, options, again=options.again)
        nuts = _result(file, "nuts", seed, options, again=False)
        yield ours, nuts
        if seed == 1 and (kind(ours, nuts) == KINDS[0] or not is_mixed(nuts)):
            return


def _files(folder: Path, names: Sequence[str], *, even: bool) -> list[Path]:
    files = sorted(folder.glob("*.py"))
    unknown = sorted(set(names) - {file.stem for file in files})
    if unknown:
        raise SystemExit(f"{folder} has no models {', '.join(unknown)}.")
    if even:
        files = list(filter(has_even_name, files))
    return [file for file in files if not names or file.stem in names]


def _result(
    file: Path, sampler: str, seed: int, options: argparse.Namespace, *, again: bool
) -> Run:
    number = "" if seed == 1 else f".{seed}"
    out = options.out / f"{file.stem}.{sampler}{number}.json"
    if again or not out.exists():
        out.unlink(missing_ok=True)
        own = [str(file.parent), file.stem, "--one", sampler, "--out", str(out)]
        own += ["--seed", str(seed)]
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


if __name__ == "__main__":
    main()
