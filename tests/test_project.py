"""Facts are kept in one place, what the documents show works, and the files travel."""

import doctest
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import pymc_austerity
from pymc_austerity.step_methods.statistics import STATISTICS

ROOT = Path(__file__).parents[1]
PACKAGE = Path(pymc_austerity.__file__).parent
README = (ROOT / "README.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tracked_files() -> list[Path]:
    """Return the text files under version control."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    files = [ROOT / name for name in names if name and not name.endswith((".png", ".npz"))]
    return [path for path in files if path.is_file()]


def public_objects() -> dict[str, object]:
    """Return what the package and its parts offer, by dotted name."""
    modules = [pymc_austerity] + [
        importlib.import_module(info.name)
        for info in pkgutil.iter_modules(pymc_austerity.__path__, "pymc_austerity.")
        if not info.name.split(".")[1].startswith("_")
    ]
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in getattr(module, "__all__", [])
    }


class TestVersion:
    def test_the_installed_version_is_that_of_the_package(self):
        assert version("pymc-austerity") == pymc_austerity.__version__


class TestReadme:
    def test_begins_with_the_two_commands(self):
        commands = [re.findall(r"^make (\w+)", block, re.M) for block in README.split("```")[1::2]]
        assert commands[0] == ["demo", "test"]

    def test_its_usage_works_as_pasted(self, tmp_path):
        (usage,) = re.findall(r"```python\n(.*?)```", README, re.S)
        script = tmp_path / "usage.py"
        script.write_text(usage)
        run = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert run.returncode == 0, run.stderr
        assert re.search(r"rows read per decision: [\d.]+ of 100,000", run.stdout)

    @pytest.mark.parametrize("folder", [".", "examples", "results"])
    def test_the_links_lead_somewhere(self, folder):
        page = (ROOT / folder / "README.md").read_text()
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", page)
        assert targets
        assert [t for t in targets if not (ROOT / folder / t).exists()] == []

    def test_its_links_are_addresses_on_the_package_index(self):
        hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
        shown = README
        for change in hook["substitutions"]:
            shown = re.sub(change["pattern"], change["replacement"], shown)
        source = PYPROJECT["project"]["urls"]["Source"]
        assert f"]({source}/blob/main/docs/howto/exact.md)" in shown
        assert f"]({source}/raw/main/docs/_generated/start_page.png)" in shown
        targets = re.findall(r"\]\(([^)]+)\)", shown)
        assert [t for t in targets if not t.startswith(("https:", "http:"))] == []

    def test_its_badges_lead_to_the_workflows_and_the_site(self):
        urls = PYPROJECT["project"]["urls"]
        workflows = f"{urls['Source']}/actions/workflows"
        owner, name = urls["Source"].split("/")[-2:]
        assert urls["Documentation"] == f"https://{owner}.github.io/{name}/"
        assert re.findall(r"!\[(\w+)\]\((\S+)\)\]\((\S+)\)", README) == [
            ("tests", f"{workflows}/tests.yml/badge.svg", f"{workflows}/tests.yml"),
            ("docs", f"{workflows}/docs.yml/badge.svg", urls["Documentation"]),
        ]
        recipe = (ROOT / "conda" / "recipe" / "recipe.yaml").read_text()
        assert f"documentation: {urls['Documentation']}\n" in recipe

    def test_the_examples_are_all_listed(self):
        examples = ROOT / "examples"
        page = (examples / "README.md").read_text()
        listed = {target.split("/")[0] for target in re.findall(r"\]\(([\w./]+)\)", page)}
        names = {p.relative_to(examples).parts[0] for p in tracked_files() if examples in p.parents}
        assert names - listed == {"README.md"}


class TestDocumentation:
    def test_public_names_are_explained(self):
        found = {
            name: inspect.getdoc(each)
            for name, each in public_objects().items()
            if inspect.isclass(each) or inspect.isroutine(each)
        }
        assert found
        assert [name for name, text in found.items() if not text] == []

    def test_top_level_names_are_in_the_api_reference(self):
        reference = (ROOT / "docs" / "api" / "index.md").read_text()
        listed = set(re.findall(r"^ +(\w+)$", reference, re.M))
        names = re.findall(r"^   (?!AusterityMH\.)[\w.]+$", reference, re.M)
        assert len(names) == len(set(names)) == 40
        others = {name: getattr(pymc_austerity, name) for name in pymc_austerity.__all__}
        errors = tuple(others[name] for name in listed if name.endswith("Error"))
        kinds = {n for n in others if n.endswith("Error") and issubclass(others[n], errors)}
        assert set(others) - listed - kinds == {"__version__"}

    def test_the_statistics_page_lists_the_statistics(self):
        declared = set(STATISTICS)
        page = (ROOT / "docs" / "howto" / "statistics.md").read_text()
        documented = set(re.findall(r"^\| `(\w+)` \|", page, re.M))
        assert declared - documented == set()


class TestPages:
    PAGES = [p for p in sorted((ROOT / "docs").rglob("*.md")) if ">>> " in p.read_text()]

    @pytest.mark.few("design_of_tests", "epsilon", "exact", "proposal", "read_a_run")
    @pytest.mark.choice
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
    def test_the_examples_of_the_site_give_what_they_show(self, page):
        result = doctest.testfile(str(page), module_relative=False)
        assert result.attempted
        assert not result.failed


class TestDependencies:
    @pytest.mark.parametrize("python", ["3.11", "3.13"])
    def test_every_one_is_pinned_for_both_generations(self, python):
        project = PYPROJECT["project"]
        wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
        lines = [x for x in (ROOT / "constraints.txt").read_text().splitlines() if x[:1].isalnum()]
        pins = {}
        for pin in map(Requirement, lines):
            if pin.marker is None or pin.marker.evaluate({"python_version": python}):
                pins[pin.name.lower()] = next(iter(pin.specifier)).version
        for requirement in map(Requirement, wanted):
            if requirement.name != "pymc-austerity":
                assert requirement.specifier.contains(pins[requirement.name.lower()])

    def test_before_a_commit_the_same_versions_check_it(self):
        text = (ROOT / ".pre-commit-config.yaml").read_text()
        hooks = re.findall(r"repo: \S+/(?:mirrors-)?(\w+?)(?:-pre-commit)?\n +rev: v(\S+)", text)
        pins = re.findall(r"(\w+)==([\w.]+)", text)
        constraints = (ROOT / "constraints.txt").read_text()
        assert {name for name, _ in hooks} == {"codespell", "mypy", "ruff"}
        for name, pin in hooks + pins:
            assert re.search(rf"^{name}=={re.escape(pin)}(;|$)", constraints, re.M), name

    def test_those_of_the_conda_package_are_the_same(self):
        recipe = (ROOT / "conda" / "recipe" / "recipe.yaml").read_text()
        (listed,) = re.findall(r"^  run:\n((?:    - .*\n)+)", recipe, re.M)
        (oldest,) = re.findall(r'python_min: "(.*)"', recipe)
        found = [line.strip(" -") for line in listed.splitlines()]
        wanted = [f"python >= {oldest}", *PYPROJECT["project"]["dependencies"]]
        assert PYPROJECT["project"]["requires-python"] == f">= {oldest}"
        found[0] = found[0].replace("${{ python_min }}", oldest)
        found = [line.replace("matplotlib-base", "matplotlib") for line in found]  # without Qt
        assert list(map(Requirement, found)) == list(map(Requirement, wanted))

    def test_what_the_conda_package_imports_exists(self):
        recipe = (ROOT / "conda" / "recipe" / "recipe.yaml").read_text()
        (listed,) = re.findall(r"imports:\n((?: +- .*\n)+)", recipe)
        names = [line.strip(" -") for line in listed.splitlines()]
        assert [name for name in names if importlib.util.find_spec(name) is None] == []

    def test_extras_that_the_documents_name_exist(self):
        documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        named = {
            extra
            for text in (document.read_text() for document in documents)
            for names in re.findall(r"(?:pymc-austerity|\"\.)\[([\w,]+)\]", text)
            for extra in names.split(",")
        }
        assert "files" in named
        assert named <= set(PYPROJECT["project"]["optional-dependencies"])

    def test_every_one_of_the_package_is_imported_by_it(self):
        sources = [path.read_text() for path in PACKAGE.rglob("*.py")]
        unused = [
            name
            for name in (Requirement(line).name for line in PYPROJECT["project"]["dependencies"])
            if not any(re.search(rf"^ *(import|from) {name}\b", s, re.M) for s in sources)
        ]
        assert unused == []


class TestFilesTravel:
    # Written in pieces, lest this file be found by its own search.
    FOREIGN = re.compile(
        r"(?<![\w.:/~}])/(?:" + "|".join(["root", "home", "Users", "work", "opt", "mnt"]) + r")/\w"
        r"|" + "|".join(["pythonhosted" + r"\.org", "pypi" + r"\.org", "index" + "-url"])
    )

    def test_no_file_names_a_place_on_one_machine_or_a_package_registry(self):
        found = {
            str(path.relative_to(ROOT)): match.group()
            for path in tracked_files()
            if (match := self.FOREIGN.search(path.read_text()))
        }
        assert found == {}

    @pytest.mark.parametrize(
        ("text", "foreign"),
        [
            ("see /" + "home/ann/data", True),
            ("--index" + "-url", True),
            ("../shared/data", False),
            ("https://example.com/" + "home/page", False),
        ],
    )
    def test_the_search_finds_what_it_should(self, text, foreign):
        assert bool(self.FOREIGN.search(text)) is foreign
