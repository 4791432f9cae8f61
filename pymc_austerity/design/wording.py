"""Numbers in words."""

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


def share_range(low: float, high: float) -> str:
    """A range of shares in per cent, with one digit each.

    Examples
    --------
    >>> from pymc_austerity.design.wording import share_range
    >>> [share_range(*pair) for pair in ((0.0, 1e-9), (1e-9, 2.1e-4), (0.0041, 0.012))]
    ['below 0.001%', 'below 0.02%', '0.4% to 1%']
    >>> [share_range(*pair) for pair in ((0.121, 0.158), (0.0101, 0.0121))]
    ['12% to 16%', 'about 1%']
    """
    if high < _LEAST:
        return f"below {100 * _LEAST:g}%"
    few, many = (f"{float(f'{100 * share:.{_digits(share)}g}'):g}%" for share in (low, high))
    if low < _LEAST:
        return f"below {many}"
    return f"about {many}" if few == many else f"{few} to {many}"


def _digits(share: float) -> int:
    return 2 if share >= 0.1 else 1


def in_round_numbers(count: float) -> str:
    """A count of at least one, to two digits; below ten, to one.

    Examples
    --------
    >>> from pymc_austerity.design.wording import in_round_numbers
    >>> [in_round_numbers(count) for count in (2.61, 387.2, 16_900.0)]
    ['3', '390', '17,000']
    """
    return f"{float(f'{count:.{2 if count >= 10.0 else 1}g}'):,.0f}"


def typically(median: float, mean: float, n_rows: int, unit: str) -> str:
    """Rows that are read, of `n_rows`, in the median and on average.

    Examples
    --------
    >>> from pymc_austerity.design.wording import typically
    >>> typically(2.2, 409.0, 1_000_000, "decision")
    'typically 2 of 1,000,000 rows per decision, 410 on average'
    >>> typically(0.2, 1.4, 5_000, "sweep")
    'typically none of 5,000 rows per sweep, 1 on average'
    >>> typically(0.2, 0.4, 5_000, "sweep")
    'less than one of 5,000 rows per sweep'
    """
    if max(median, mean) < 1.0:
        return f"less than one of {n_rows:,} rows per {unit}"
    few, many = (in_round_numbers(rows) if rows >= 1.0 else "none" for rows in (median, mean))
    beside = f", {many} on average" if many != few else ""
    return f"typically {few} of {n_rows:,} rows per {unit}{beside}"
