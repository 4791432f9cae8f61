"""Errors and warnings; each message is one sentence with the subject, the reason and the remedy."""

import sys
import warnings


class NotRowwiseError(ValueError):
    """The log-likelihood of one row needs other rows, so it cannot be evaluated on a mini-batch."""


class SettingError(ValueError):
    """An argument has a value that cannot be used."""


class SettingTypeError(SettingError, TypeError):
    """An argument has a type that cannot be used."""


class DataError(ValueError):
    """The observed data, or the log-density they imply, cannot be used."""


class StaleDataError(DataError):
    """The model's data were changed after the step method had read them."""


class StorageError(OSError):
    """The rows cannot be stored on this machine, or cannot be read back."""


class AusterityWarning(UserWarning):
    """Something works, but costs more or means less than the user may expect."""


_NOT_THE_USERS = {"pymc_austerity", "pymc", "contextlib"}
"""Packages whose lines led to a warning, but are not where it can be mended."""


def warn_user(sentence: str) -> None:
    """Warn as from the line of the user that led here, below this package and PyMC."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] in _NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, AusterityWarning, stacklevel=level)
