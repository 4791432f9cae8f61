"""Control variates of third order, made from those of second order."""

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pymc_austerity._pymc import underivable
from pymc_austerity.control_variates import ThirdOrder
from pymc_austerity.rows import sum_over_rows
from pymc_austerity.setup.plans import About
from pymc_austerity.setup.row_functions import CubicRows, cubic_rows

__all__ = ["NotThirdOrderError", "cubic_rows_of", "with_third_order"]


class NotThirdOrderError(ValueError):
    """There are no control variates of third order; the message says why, as a clause."""


def cubic_rows_of(about: About, which: NDArray[np.intp] | None = None) -> CubicRows:
    """All rows expanded to the third order, or some of them.

    Decisions are the same either way: rows may have expansions of different orders, as long as the
    sum of all expansions is known.

    Parameters
    ----------
    about : About
        Rows with their expansion of second order.
    which : int array, optional
        Which rows; only for rows in memory.

    Raises
    ------
    NotThirdOrderError
        Rows are not functions of few predictors, or have no third derivatives.
    """
    about.say("adding up third derivatives")
    try:
        cubic = cubic_rows(about.problem, about.residuals, about.anchor.point, which)
    except underivable:
        raise NotThirdOrderError("an operation of the likelihood has no third derivative") from None
    if isinstance(cubic, str):
        raise NotThirdOrderError(cubic)
    return cubic


def with_third_order(about: About, cubic: CubicRows) -> About:
    """The same expansion with the sum of third-order terms.

    Raises
    ------
    NotThirdOrderError
        The sum is not finite.
    """
    point = about.anchor.point
    with threadpool_limits(1, user_api="blas"):  # as where the Hessian is added up
        sums = sum_over_rows(
            lambda block: cubic.thirds.sums(point, *block), cubic.rows, ("third order", point)
        )
    if not np.isfinite(sums).all():
        raise NotThirdOrderError("third derivatives are not finite there")
    anchor = about.anchor.to_third_order(ThirdOrder(sums))
    return about._replace(residuals=cubic.residuals, anchor=anchor)
