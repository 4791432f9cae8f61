"""Execute the notebooks of the gallery and keep their outputs, as ``make notebooks`` does.

A notebook is written as text (``name.myst.md``). Executed, it is kept beside it as ``name.ipynb``,
which the site shows and readers can download. A cell that fails is an error, and so is one that
warns without the tag "warns".
"""

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbformat import NotebookNode

GALLERY = Path(__file__).parent
SUFFIX = ".myst.md"
PLACE = re.compile(r"^\S+\.py:\d+: (\w+Warning: .*\n)  .*\n", re.M)
"""Where a warning came from, with the line of code."""


def execute(source: Path) -> NotebookNode:
    """Return the notebook with its outputs; it runs in a folder of its own."""
    notebook = jupytext.read(source)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=600, resources=resources, coalesce_streams=True)
        client.execute()
    return notebook


def without_traces(notebook: NotebookNode) -> NotebookNode:
    """Remove what differs from run to run: times, versions, places, and random names of cells."""
    language = {"name": "python", "pygments_lexer": "ipython3"}
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": language}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"].pop("execution", None)
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = PLACE.sub(r"\1", output.text)
    return notebook


def warnings_in(notebook: NotebookNode) -> list[str]:
    """Return the lines of the outputs that are warnings nobody expects."""
    silent = (cell for cell in notebook.cells if "warns" not in cell.metadata.get("tags", ()))
    outputs = (output for cell in silent for output in cell.get("outputs", ()))
    text = (output.text for output in outputs if output.output_type == "stream")
    return [line for lines in text for line in lines.splitlines() if "Warning: " in line]


def main() -> None:
    """Execute all notebooks, or those that are named."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    # PyTensor 2 from pip says so where its C backend is used, as by pm.fit.
    os.environ["PYTHONWARNINGS"] = "ignore:PyTensor could not link to a BLAS:UserWarning"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="without the suffix; by default all")
    wanted = parser.parse_args().names
    for source in sorted(GALLERY.glob(f"*{SUFFIX}")):
        name = source.name.removesuffix(SUFFIX)
        if wanted and name not in wanted:
            continue
        begun = time.perf_counter()
        notebook = without_traces(execute(source))
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
        if found := warnings_in(notebook):
            sys.exit("\n".join([f"{name} warns:", *found]))
        jupytext.write(notebook, source.with_name(f"{name}.ipynb"))


if __name__ == "__main__":
    main()
