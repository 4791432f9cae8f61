"""What a user is told while a model is sampled, by this package and by PyMC."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pymc_austerity import AusterityWarning


@dataclass
class Said:
    """Messages of a run.

    Attributes
    ----------
    caught : list of warnings.WarningMessage
        All warnings.
    logged : list of str
        What PyMC's own checks of convergence logged, which is how NUTS warns.
    """

    caught: list[warnings.WarningMessage]
    logged: list[str] = field(default_factory=list)

    @property
    def about_draws(self) -> list[str]:
        """Warnings about the draws, each once."""
        ours = [str(w.message) for w in self.caught if issubclass(w.category, AusterityWarning)]
        return list(dict.fromkeys([*ours, *self.logged]))


@contextmanager
def listening() -> Iterator[Said]:
    """Collect warnings, and what PyMC's checks log."""
    log = logging.getLogger("pymc.stats.convergence")
    level, propagates = log.level, log.propagate
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = Said(caught)
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: said.logged.append(record.getMessage())  # type: ignore[method-assign]
        log.addHandler(handler)
        log.setLevel(logging.WARNING)
        log.propagate = False
        try:
            yield said
        finally:
            log.removeHandler(handler)
            log.setLevel(level)
            log.propagate = propagates
