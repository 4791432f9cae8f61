"""Imports run downward, and private names of PyMC and PyTensor are imported in one part."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pymc_austerity"

NOTES = (PACKAGE.parent / "docs" / "design" / "index.md").read_text()

# Every part of the package and the other parts that it may import.
MAY_IMPORT = {
    part.strip(" `"): set(re.findall(r"`(\w+)`", may))
    for part, _, may in (
        line.split("|")[1:-1] for line in NOTES.splitlines() if line.startswith("| `")
    )
}

# The parts that may know PyMC and PyTensor at all, and the names that are public enough for them.
KNOW_PYMC = {
    "_pymc", "model", "setup", "step_methods", "paper", "distributed", "pointwise",
}  # fmt: skip
PUBLIC = {"pymc", "pytensor", "pytensor.tensor"}


def imported_modules(source: str) -> set[str]:
    """Return the absolute names of the modules that a module imports.

    ``from a import b`` counts as ``a.b``: whether b is a module or a name in one, a is not enough
    to tell what was meant.
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "write out the package"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
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


IMPORTS = {path: imported_modules(path.read_text()) for path in modules_of_package()}


class TestEveryModule:
    def test_imports_only_parts_below_it(self):
        above = {
            str(path.relative_to(PACKAGE)): parts
            for path, modules in IMPORTS.items()
            if (parts := parts_imported(modules) - MAY_IMPORT[part_of(path)] - {part_of(path)})
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


def test_every_part_is_in_the_table():
    assert set(MAY_IMPORT) == {part_of(path) for path in IMPORTS}


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
        ("def f():\n    import pymc_austerity.rows", {"pymc_austerity.rows"}),
    ],
)
def test_imports_are_found_wherever_they_are_written(source, expected):
    assert imported_modules(source) == expected


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


def test_compiled_code_divides_by_zero_without_an_error():
    """Code that is called by an address cannot raise one: what it should have written is lost."""
    calls = [
        (path.name, re.sub(r"\s+", " ", text))
        for path in PACKAGE.rglob("*.py")
        for text in re.findall(
            r"(?:njit|cfunc|overload)\([^()]*(?:\([^()]*\)[^()]*)*\)", path.read_text()
        )
    ]
    by_one_decorator = [path.read_text().count("@compiled_once") for path in PACKAGE.rglob("*.py")]
    assert len(calls) + sum(by_one_decorator) >= 39
    assert {"parts.py", "transitions.py", "generated.py"} <= {name for name, _ in calls}
    assert not [call for call in calls if "error_model" not in call[1]]
