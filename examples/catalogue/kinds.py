"""What ``AusterityMH()`` chooses for every model of a folder, without a draw."""

from pathlib import Path

from examples.catalogue.run import load_model, quiet
from pymc_austerity import AusterityMH


def has_even_name(file: Path) -> bool:
    """Whether the name of a file has an even number of letters."""
    return sum(map(str.isalpha, file.stem)) % 2 == 0


def chosen_kinds(folder: Path) -> dict[str, tuple[str, str]]:
    """The class of the step method for each model with an even name, and what went wrong.

    Parameters
    ----------
    folder : path
        Files with ``build_model()``; those that cannot be built are left out.
    """
    kinds = {}
    for file in filter(has_even_name, sorted(folder.glob("*.py"))):
        with quiet(file.parent):
            try:
                model = load_model(file)
            except Exception:  # noqa: BLE001  what the model needs is not installed
                continue
            try:
                with model:
                    kinds[file.stem] = type(AusterityMH()).__name__, ""
            except Exception as error:  # noqa: BLE001  how it ends is a result
                kinds[file.stem] = "", f"{type(error).__name__}: {error}"
    return kinds
