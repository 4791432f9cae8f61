"""The test that reads the fewest rows among those that err no more often than allowed."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from pymc_austerity.design.error import distance_grid, operating_characteristic, worst_error
from pymc_austerity.design.looks import Boundary, Looks, constant_looks
from pymc_austerity.design.wording import percentage
from pymc_austerity.errors import SettingError

Floats = NDArray[np.float64]
ALPHAS = (0.0, 0.2, 0.35, 0.5)
"""Shapes of the boundary to try."""

_FARTHEST = 6.0
"""Largest boundary to try, in standard errors."""

_MOST_LOOKS = 100
_FEW_LOOKS = 20
_FEWEST_ROWS = 100
_TINY = 1e-12


@dataclass(frozen=True)
class TestDesign:
    """A sequential test, with its expected error and cost.

    Attributes
    ----------
    batch_size : int
        Rows of the first look, m; with constant looks, of every look.
    epsilon, alpha : float
        Parameters of the boundary, see `Boundary`.
    expected_error : float
        Expected share of wrong decisions.
    worst_error : float
        Probability of a wrong decision right at the threshold. No decision errs more often.
    expected_data_fraction : float
        Expected share of the rows read for a decision.
    """

    __test__: ClassVar[bool] = False  # not a test of this package, whatever its name begins with

    batch_size: int
    epsilon: float
    alpha: float
    expected_error: float
    worst_error: float
    expected_data_fraction: float

    def __str__(self) -> str:
        return (
            f"batch_size {self.batch_size}, epsilon {self.epsilon:.3g}, alpha {self.alpha:g}: "
            f"reads {self.expected_data_fraction:.1%} of the rows; expect "
            f"{percentage(self.expected_error)} of all decisions to be wrong; "
            f"a decision exactly at the threshold is wrong with probability {self.worst_error:.2g}"
        )


class DesignProblem(NamedTuple):
    """Purpose of a design: tests to try, and decisions over which error and usage are averaged."""

    n_rows: int
    looks: Callable[[int, int], Looks]
    sizes: list[int]
    decisions: Floats
    distances: Floats

    @classmethod
    def of(
        cls,
        mu_std: ArrayLike,
        n_rows: int,
        looks: Callable[[int, int], Looks],
        batch_sizes: Iterable[int] | None,
    ) -> "DesignProblem":
        """Means over decisions at given distances, for tests of these batch sizes."""
        sizes = default_batch_sizes(n_rows, looks) if batch_sizes is None else sorted(batch_sizes)
        if not sizes:
            raise SettingError("batch_sizes must name at least one value to try.")
        decisions = np.abs(np.asarray(mu_std, dtype=np.float64))
        tests = [looks(size, n_rows) for size in sizes]
        return cls(n_rows, looks, sizes, decisions, distance_grid(tests, float(decisions.max())))

    def design(self, batch_size: int, boundary: Boundary) -> TestDesign:
        """Expected error and cost of a test."""
        looks = self.looks(batch_size, self.n_rows)
        found = operating_characteristic(self.distances, looks, boundary)
        error, usage = (np.interp(self.decisions, self.distances, each).mean() for each in found)
        return TestDesign(
            batch_size=batch_size,
            epsilon=boundary.epsilon,
            alpha=boundary.alpha,
            expected_error=float(error),
            worst_error=float(found.error[0]),
            expected_data_fraction=float(usage),
        )


def default_batch_sizes(n_rows: int, looks: Callable[[int, int], Looks]) -> list[int]:
    """Batch sizes up to half of the rows, in geometric steps, which are finer if looks are few.

    Parameters
    ----------
    n_rows : int
        Number of all rows.
    looks : callable
        Maps a batch size and the number of rows to the looks of a test.

    Returns
    -------
    list of int
        Increasing; none below 100 rows, whose means are rarely normal, and none that leads to more
        than 100 looks. All rows if there are fewer than 200.

    Examples
    --------
    >>> from pymc_austerity.design import constant_looks, default_batch_sizes
    >>> default_batch_sizes(2_000, constant_looks)
    [125, 157, 198, 250, 315, 397, 500, 630, 794, 1000]
    """
    sizes: list[int] = []
    size = float(n_rows // 2)
    while size >= _FEWEST_ROWS and (n_looks := len(looks(round(size), n_rows))) <= _MOST_LOOKS:
        sizes.append(round(size))
        size /= 2.0 if n_looks > _FEW_LOOKS else 2.0 ** (1.0 / 3.0)
    return sizes[::-1] or [n_rows]


def cheapest(
    question: DesignProblem,
    risk: Callable[[int, Boundary], float],
    max_error: float,
    alphas: Sequence[float],
    loosest: float = 0.5,
) -> TestDesign:
    """Try all batch sizes and shapes, each with the largest allowed epsilon."""
    if not 0.0 < max_error < 0.5:
        raise SettingError(f"max_error is {max_error}: it must lie above 0 and below 0.5.")
    if not len(alphas):
        raise SettingError("alphas must name at least one value to try.")
    best = question.design(question.sizes[0], Boundary(0.0, alphas[0]))
    for size in question.sizes:
        for alpha in alphas:
            if size >= best.expected_data_fraction * question.n_rows:
                continue  # its first look alone costs as much
            epsilon = min(_largest_epsilon(partial(risk, size), max_error, alpha), loosest)
            design = question.design(size, Boundary(epsilon, alpha))
            if design.expected_data_fraction < best.expected_data_fraction:
                best = design
    return best


def _largest_epsilon(risk: Callable[[Boundary], float], max_error: float, alpha: float) -> float:
    """Largest epsilon, to three digits, whose risk is not above `max_error`."""

    def excess(bound: float) -> float:
        """Positive where the risk is too large; on a log scale, on which it is nearly linear."""
        return math.log((risk(Boundary(float(ndtr(-bound)), alpha)) + _TINY) / max_error)

    if excess(0.0) <= 0.0:
        return 0.5
    if excess(_FARTHEST) > 0.0:
        return 0.0
    bound = brentq(excess, 0.0, _FARTHEST, xtol=1e-3)
    while excess(bound) > 0.0:
        bound += 1e-3
    return _rounded_down(float(ndtr(-bound)))


def _rounded_down(value: float) -> float:
    """Value rounded down to three significant digits."""
    digits = 2 - math.floor(math.log10(value))
    return float(f"{math.floor(value * 10.0**digits) / 10.0**digits:.3g}")


def average_design(
    mu_std: ArrayLike,
    n_rows: int,
    max_error: float,
    *,
    looks: Callable[[int, int], Looks] = constant_looks,
    batch_sizes: Iterable[int] | None = None,
    alphas: Sequence[float] = ALPHAS,
    loosest: float = 0.5,
) -> TestDesign:
    r"""The cheapest test for decisions like some.

    Minimizes the mean of :math:`\bar\pi` over the decisions subject to the mean of :math:`E` being
    at most `max_error`.

    Parameters
    ----------
    mu_std : float array, shape (n,)
        Distances of the decisions from the threshold, in units of the spread.
    n_rows : int
        Number of all rows, N.
    max_error : float
        Largest expected share of wrong decisions, above 0 and below 0.5.
    looks : callable
        Maps a batch size and the number of rows to the looks of a test, such as `constant_looks`.
    batch_sizes : iterable of int, optional
        Batch sizes to try; by default `default_batch_sizes`.
    alphas : sequence of float
        Shapes of the boundary to try; ``(0.5,)`` for Pocock's only.
    loosest : float
        Largest `epsilon` to try. It prevents decisions unlike these from being made on too few
        rows.

    Returns
    -------
    TestDesign
        With `epsilon` as large as `max_error` allows; ``epsilon=0``, which reads all rows, if no
        test qualifies.

    Raises
    ------
    SettingError
        If `max_error` is out of range or there is nothing to try.

    Notes
    -----
    :math:`E` and :math:`\bar\pi` are interpolated linearly over a grid of 257 values of
    :math:`\mu_{std}`. The paper limits the error of acceptance probabilities instead, in which
    errors in both directions cancel.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.design import average_design
    >>> mu_std = np.random.default_rng(1).normal(0.0, 3.0, size=200)
    >>> average_design(mu_std, n_rows=10_000, max_error=0.01).expected_error <= 0.01
    True
    """
    question = DesignProblem.of(mu_std, n_rows, looks, batch_sizes)

    def risk(batch_size: int, boundary: Boundary) -> float:
        return question.design(batch_size, boundary).expected_error

    return cheapest(question, risk, max_error, alphas, loosest)


def worst_case_design(
    n_rows: int,
    max_error: float,
    *,
    mu_std: ArrayLike | None = None,
    looks: Callable[[int, int], Looks] = constant_looks,
    batch_sizes: Iterable[int] | None = None,
    alphas: Sequence[float] = ALPHAS,
) -> TestDesign:
    r"""The cheapest test of which no decision errs more often than allowed.

    Minimizes the mean of :math:`\bar\pi` subject to :math:`E(0+) \le` `max_error`. Valid for any
    posterior; to cover decisions close to the threshold, it reads more than `average_design` does.

    Parameters
    ----------
    n_rows : int
        Number of all rows, N.
    max_error : float
        Largest error of any decision, above 0 and below 0.5.
    mu_std : float array, shape (n,), optional
        Distances over which data usage is averaged; by default, evenly
        spaced from 0 to 10. The bound on the error does not depend on them.
    looks, batch_sizes, alphas
        As in `average_design`.

    Returns
    -------
    TestDesign
        Its expected values are means over `mu_std`.

    Raises
    ------
    SettingError
        If `max_error` is out of range or there is nothing to try.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.2.

    Examples
    --------
    >>> from pymc_austerity.design import worst_case_design
    >>> design = worst_case_design(n_rows=10_000, max_error=0.05)
    >>> design.worst_error <= 0.05, design.epsilon < 0.05
    (True, True)
    """
    distances = np.linspace(0.0, 10.0, 201) if mu_std is None else mu_std
    question = DesignProblem.of(distances, n_rows, looks, batch_sizes)

    def risk(batch_size: int, boundary: Boundary) -> float:
        return worst_error(looks(batch_size, n_rows), boundary)

    return cheapest(question, risk, max_error, alphas)
