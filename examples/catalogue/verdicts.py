"""What two runs of a model say about each other."""

import math

from examples.catalogue.run import Run, is_mixed

KINDS = ("right and mixed", "wrong", "not mixed", "refused", "error", "no answer in time")
SLOWER = 1.3
"""Times as long as NUTS, from which a run counts as slow."""
_DEVIATIONS = 6.0
"""Standard errors by which means of two right runs may differ, the worst of many entries."""
_OF_SD = 0.1
"""Share of a standard deviation by which they may differ in any case: 50 effective draws."""


def kind(ours: Run, nuts: Run) -> str:
    """How a run fared, one of `KINDS`; means are compared where NUTS mixed as well."""
    if ours.error.startswith("time"):
        return "no answer in time"
    if ours.error:
        return "refused" if ours.refused else "error"
    if not is_mixed(ours):
        return "not mixed"
    return "wrong" if is_mixed(nuts) and not _agree(ours, nuts) else "right and mixed"


def _agree(ours: Run, nuts: Run) -> bool:
    for name in ours.means.keys() & nuts.means.keys():
        difference = abs(ours.means[name] - nuts.means[name])
        error = math.hypot(ours.errors[name], nuts.errors[name])
        if difference > max(_DEVIATIONS * error, _OF_SD * nuts.sds[name]):
            return False
    return True


def is_slow(ours: Run, nuts: Run, times: float = SLOWER, more: float = 0.0) -> bool:
    """Whether a run took longer than one of NUTS that ended, set-up and compilation included.

    Parameters
    ----------
    ours, nuts : Run
    times : float
        Times as long as NUTS.
    more : float
        Seconds in addition.
    """
    return not (ours.error or nuts.error) and ours.seconds > times * nuts.seconds + more
