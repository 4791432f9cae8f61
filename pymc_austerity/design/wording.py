"""Shares in words."""

__all__ = ["percentage"]

_LEAST = 1e-5


def percentage(share: float) -> str:
    """A share in per cent with two digits, however small.

    Examples
    --------
    >>> from pymc_austerity.design.wording import percentage
    >>> [percentage(share) for share in (0.0, 1e-9, 4.5e-5, 0.0123, 0.285, 1.0)]
    ['0%', 'less than 0.001%', '0.0045%', '1.2%', '28%', '100%']
    """
    if 0.0 < share < _LEAST:
        return f"less than {100 * _LEAST:g}%"
    return f"{float(f'{100 * share:.2g}'):g}%"
