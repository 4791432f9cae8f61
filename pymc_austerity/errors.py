"""Errors and warnings; each message is one sentence with the subject, the reason and the remedy."""


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
