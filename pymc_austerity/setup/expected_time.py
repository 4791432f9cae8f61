"""What NUTS is expected to take, which decides whether set-up is worth its time."""

__all__ = ["SETUP_SECONDS", "nuts_seconds", "seconds_per_effective_draw"]

_GRADIENTS = 10
"""Gradients of a transition of NUTS: trajectories of well behaved posteriors."""
_PER_GRADIENT, _PER_ROW = 1.2e-4, 3e-8
"""Seconds: PyMC's work on a step of a trajectory, and on a row of it."""
_TRANSITIONS = 4_000
"""A run of two chains, 1,000 draws each, as many for tuning."""
SETUP_SECONDS = 10.0
"""Set-up of the step methods of this package, with empty caches."""


def seconds_per_effective_draw(n_rows: int) -> float:
    """Seconds that NUTS needs for an effective draw of a well behaved posterior.

    Parameters
    ----------
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> round(seconds_per_effective_draw(1_000_000), 1)
    0.3
    """
    return _GRADIENTS * (_PER_GRADIENT + _PER_ROW * n_rows)


def nuts_seconds(n_rows: int) -> float:
    """Seconds that a run of NUTS takes, without compilation.

    Parameters
    ----------
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> round(nuts_seconds(1_000))
    6
    """
    return _TRANSITIONS * seconds_per_effective_draw(n_rows)
