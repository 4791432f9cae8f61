"""Size of the repository: lines of code, words of the site, and what may exist twice.

Lines of code are those that hold neither comments nor docstrings nor nothing. Words are those of
README.md and of the pages of the site, without code, formulas and tables that commands write.
"""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pymc_austerity"
MOST_PARAMETERS = 8
_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(path: Path) -> int:
    """Lines of a file without comments, docstrings and blank ones."""
    text = path.read_text()
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def module_of(path: Path) -> str:
    """Dotted name of a file of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def words_of(path: Path) -> int:
    """Words of a page in Markdown, without code blocks, indented code and formulas."""
    text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(), flags=re.S)
    text = re.sub(
        r"^ *(`{3,}).*?^ *\1 *$|^ {4}.*?$|\$\$.*?\$\$|\$[^$\n]+\$", "", text, flags=re.M | re.S
    )
    return sum(any(map(str.isalnum, word)) for word in text.split())


def pages() -> list[Path]:
    """README.md, and the pages of the site that are written by hand."""
    docs = ROOT / "docs"
    made = (docs / "_generated", docs / "_build", docs / "api" / "generated")
    written = [p for p in sorted(docs.rglob("*.md")) if not set(made) & set(p.parents)]
    return [ROOT / "README.md", *written]


def definitions(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions and classes at the top level of a file."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node


def clients(paths: list[Path]) -> dict[str, set[str]]:
    """The modules of the package that import each module, packages that only list names apart."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        if path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found[node.module].add(module_of(path))
    return found


def many_parameters(paths: list[Path]) -> list[str]:
    """Functions with more than eight parameters, ``self`` apart."""
    found = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                its = node.args
                names = [a.arg for a in (*its.posonlyargs, *its.args, *its.kwonlyargs)]
                n_parameters = len([name for name in names if name not in ("self", "cls")])
                if n_parameters > MOST_PARAMETERS:
                    found.append(f"{module_of(path)}.{node.name} ({n_parameters})")
    return found


def main() -> None:
    """Print the figures."""
    for folder in (PACKAGE, ROOT / "tests", ROOT / "examples"):
        paths = sorted(folder.rglob("*.py"))
        print(f"{folder.name}: {sum(map(lines_of_code, paths)):,} lines in {len(paths)} files")
    print(f"site: {sum(map(words_of, pages())):,} words in {len(pages())} pages")
    paths = sorted(PACKAGE.rglob("*.py"))
    by_part: Counter[str] = Counter()
    for path in paths:
        by_part[path.relative_to(PACKAGE).parts[0]] += lines_of_code(path)
    print(", ".join(f"{part} {n:,}" for part, n in by_part.most_common()))
    used = clients(paths)
    alone = [p for p in paths if p.name != "__init__.py" and len(used[module_of(p)]) == 1]
    print(f"\nFiles with one client ({len(alone)}):")
    print("\n".join(f"  {module_of(p)} <- {min(used[module_of(p)])}" for p in alone))
    where: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        for node in definitions(path):
            where[node.name].append(module_of(path))
    twice = {k: v for k, v in where.items() if len(v) > 1 and not k.startswith("_")}
    print(f"\nNames that exist twice ({len(twice)}):")
    print("\n".join(f"  {name}: {', '.join(v)}" for name, v in sorted(twice.items())))
    many = many_parameters(paths)
    print(f"\nFunctions with more than {MOST_PARAMETERS} parameters ({len(many)}):")
    print("\n".join(f"  {each}" for each in many))


if __name__ == "__main__":
    main()
