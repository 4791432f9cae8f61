"""Imports run downward, and private names of PyMC and PyTensor are imported in one part."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pymc_austerity"

# Every part of the package and the other parts that it may import.
MAY_IMPORT = {
    "errors": set(),
    "_pymc": {"errors"},
    "arguments": {"errors"},
    "strata": set(),
    "time_limit": set(),
    "parts": set(),
    "sequential": {"errors", "arguments", "strata", "parts"},
    "proposals": {"errors", "arguments"},
    "rows": {"errors", "time_limit", "strata", "parts"},
    "model": {"errors", "time_limit", "arguments", "_pymc"},
    "sources": {"errors", "arguments"},
    "exact": {"errors", "arguments", "parts"},
    "control_variates": {"errors", "rows"},
    "design": {"errors", "arguments", "sequential", "strata"},
    "compiled": {"proposals", "sequential", "exact", "strata", "parts"},
    "levels": {"parts", "proposals", "sequential", "exact", "compiled"},
    "deciding": {
        "errors", "arguments", "strata", "sequential", "proposals", "rows", "exact", "design",
    },
    "setup": {
        "errors", "time_limit", "arguments", "_pymc", "strata", "sequential", "proposals", "rows",
        "model", "exact", "control_variates", "design", "compiled", "levels", "deciding", "sources",
    },
    "step_methods": {
        "errors", "time_limit", "arguments", "_pymc", "sequential", "proposals",
        "exact", "model", "control_variates", "design", "compiled", "levels", "deciding", "setup",
        "diagnostics",
    },
    "paper": {
        "errors", "arguments", "_pymc", "parts", "sequential", "proposals", "rows", "model",
        "compiled", "setup", "step_methods",
    },
    "distributed": {"errors", "_pymc", "rows", "model", "sources", "step_methods", "diagnostics"},
    "pointwise": {"errors", "arguments", "_pymc", "model", "setup"},
    "diagnostics": {"errors", "arguments", "sequential", "design"},
    "plots": {"errors", "arguments", "diagnostics"},
}  # fmt: skip

# The parts that may know PyMC and PyTensor at all, and the names that are public enough for them.
KNOW_PYMC = {
    "_pymc", "model", "setup", "step_methods", "paper", "distributed", "pointwise",
}  # fmt: skip
PUBLIC = {"pymc", "pytensor", "pytensor.tensor"}


def imported_modules(source: str, package: str) -> set[str]:
    """Return the absolute names of the modules that a module of `package` imports.

    ``from a import b`` counts as ``a.b``: whether b is a module or a name in one, a is not enough
    to tell what was meant.
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join(parents if node.level else []) + ("." if node.level else "")
            base = (base + (node.module or "")).strip(".")
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def parts_imported(modules: set[str]) -> set[str]:
    """Return the parts of this package among modules."""
    return {m.split(".")[1] for m in modules if m.startswith("pymc_austerity.")}


def foreign_imports(modules: set[str]) -> set[str]:
    """Return what is imported from PyMC and PyTensor."""
    return {m for m in modules if m.split(".")[0] in {"pymc", "pytensor"}}


def is_public(module: str) -> bool:
    """Tell whether module is a public package, or a public name, not a module, right inside one."""
    parent, _, name = module.rpartition(".")
    if module in PUBLIC:
        return True
    return parent in PUBLIC and not name.startswith("_") and find_spec(module) is None


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def modules_of_package() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def imports_of(path: Path) -> set[str]:
    package = ".".join(path.relative_to(PACKAGE.parent).parts[:-1])
    return imported_modules(path.read_text(), package)


IMPORTS = {path: imports_of(path) for path in modules_of_package()}


class TestEveryModule:
    def test_imports_only_parts_below_it(self):
        above = {
            str(path.relative_to(PACKAGE)): parts
            for path, modules in IMPORTS.items()
            if (
                parts := parts_imported(modules)
                - MAY_IMPORT.get(part_of(path), set())
                - {part_of(path)}
            )
        }
        assert above == {}, "say in MAY_IMPORT what these parts may import"

    def test_knows_pymc_only_where_it_may(self):
        knowing = {part_of(path) for path, modules in IMPORTS.items() if foreign_imports(modules)}
        assert knowing <= KNOW_PYMC

    def test_leaves_private_names_to_one_part(self):
        private = {
            str(path.relative_to(PACKAGE)): names
            for path, modules in IMPORTS.items()
            if part_of(path) != "_pymc"
            and (names := {m for m in foreign_imports(modules) if not is_public(m)})
        }
        assert private == {}


def test_the_table_of_the_design_notes_is_this_one():
    notes = (PACKAGE.parent / "docs" / "design" / "index.md").read_text()
    rows = [line.split("|")[1:-1] for line in notes.splitlines() if line.startswith("| `")]
    names = [(re.findall(r"`(\w+)`", part), re.findall(r"`(\w+)`", may)) for part, _, may in rows]
    table = {part: set(may) for (part,), may in names}
    assert table == MAY_IMPORT


def test_nothing_imports_upward():
    """The table itself has no cycle: some order of the parts has all imports pointing back."""
    below: set[str] = set()
    while rest := {part for part in MAY_IMPORT if part not in below}:
        ready = {part for part in rest if MAY_IMPORT[part] <= below}
        assert ready, f"a cycle among {sorted(rest)}"
        below |= ready


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import pymc as pm", {"pymc"}),
        ("from pymc.step_methods import metropolis", {"pymc.step_methods.metropolis"}),
        ("from . import moments", {"pymc_austerity.rows.moments"}),
        ("from ..sequential import decide", {"pymc_austerity.sequential.decide"}),
        ("from ..sequential.t import decide", {"pymc_austerity.sequential.t.decide"}),
        ("def f():\n    import pymc_austerity.rows", {"pymc_austerity.rows"}),
    ],
)
def test_imports_are_found_wherever_they_are_written(source, expected):
    assert imported_modules(source, "pymc_austerity.rows") == expected


@pytest.mark.parametrize(
    ("module", "public"),
    [
        ("pymc", True),
        ("pytensor.tensor", True),
        ("pymc.Model", True),
        ("pymc._private", False),
        ("pytensor.graph", False),
        ("pymc.pytensorf.rewrite_pregrad", False),
        ("pytensor.graph.basic.Apply", False),
    ],
)
def test_private_names_are_told_from_public_ones(module, public):
    assert is_public(module) is public
