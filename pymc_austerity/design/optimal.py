"""The test that reads the fewest rows among those that err no more often than allowed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pymc_austerity.design.acceptance import AcceptanceQuadrature
from pymc_austerity.design.boundaries import Boundary
from pymc_austerity.design.error import worst_error
from pymc_austerity.design.looks import Looks, constant_looks
from pymc_austerity.design.promise import TestDesign
from pymc_austerity.design.search import (
    ALPHAS,
    Question,
    cheapest,
    check_settings,
    common_grid,
    mean_weights,
    sizes_to_try,
)
from pymc_austerity.design.trial import TrialRun
from pymc_austerity.errors import SettingError

__all__ = ["average_design", "worst_case_design"]


def average_design(
    trial: TrialRun,
    max_error: float,
    *,
    measure: Literal["acceptance", "decision"] = "acceptance",
    looks: Callable[[int, int], Looks] = constant_looks,
    batch_sizes: Iterable[int] | None = None,
    alphas: Sequence[float] = ALPHAS,
    loosest: float = 0.5,
) -> TestDesign:
    r"""The cheapest test for decisions like those of a trial run.

    Minimizes the mean of :math:`\bar\pi` over the triples subject to the mean of :math:`|\Delta|`,
    or of :math:`E`, being at most `max_error`.

    Parameters
    ----------
    trial : TrialRun
        Decisions of a trial run.
    max_error : float
        Largest expected error, above 0 and below 0.5.
    measure : {"acceptance", "decision"}
        Error to limit: that of acceptance probabilities (:math:`|\Delta|`, as in the paper; needs
        `TrialRun.log_u`) or of single decisions (:math:`E`, stricter, and what an audit counts).
    looks : callable
        Maps a batch size and the number of rows to the looks of a test, such as `constant_looks`.
    batch_sizes : iterable of int, optional
        Batch sizes to try; by default `default_batch_sizes`.
    alphas : sequence of float
        Shapes of the boundary to try; ``(0.5,)`` for Pocock's only.
    loosest : float
        Largest `epsilon` to try. It prevents decisions unlike those of the trial run from being
        made on too few rows.

    Returns
    -------
    TestDesign
        With `epsilon` as large as `max_error` allows; ``epsilon=0``, which reads all rows, if no
        test qualifies.

    Raises
    ------
    SettingError
        If `max_error` is out of range or there is nothing to try.
    DataError
        If :math:`|\Delta|` is requested and `trial` has no `log_u`.

    Notes
    -----
    :math:`E` and :math:`\bar\pi` are interpolated linearly over a grid of 257 values of
    :math:`\mu_{std}`.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.design import TrialRun, average_design
    >>> rng = np.random.default_rng(1)
    >>> log_u = np.log(rng.uniform(size=200))
    >>> trial = TrialRun(
    ...     mean=rng.normal(-5e-5, 1e-4, size=200), standard_deviation=np.full(200, 0.01),
    ...     log_threshold=log_u, log_u=log_u, n_rows=10_000,
    ... )
    >>> design = average_design(trial, max_error=0.01)
    >>> design.expected_acceptance_error <= 0.01
    True
    """
    if measure not in ("acceptance", "decision"):
        raise SettingError(f"measure is {measure!r}: it must be 'acceptance' or 'decision'")
    sizes = sizes_to_try(batch_sizes, trial.n_rows, looks)
    check_settings(max_error, sizes, alphas)
    mu_std = np.abs(trial.mu_std)
    grid = common_grid([looks(size, trial.n_rows) for size in sizes], float(mu_std.max()))
    quadrature = None
    if measure == "acceptance" or trial.log_u is not None:
        quadrature = AcceptanceQuadrature.of(trial.log_ratio, trial.spread, grid)
    question = Question(trial.n_rows, looks, grid, mean_weights(mu_std, grid), quadrature)

    def risk(batch_size: int, boundary: Boundary) -> float:
        design = question.design(batch_size, boundary)
        of_decisions = measure == "decision"
        return design.expected_error if of_decisions else design.expected_acceptance_error

    return cheapest(question, risk, max_error, sizes, alphas, loosest)


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
        Distances over which data usage is averaged, such as `TrialRun.mu_std`; by default, evenly
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
    sizes = sizes_to_try(batch_sizes, n_rows, looks)
    check_settings(max_error, sizes, alphas)
    given = np.linspace(0.0, 10.0, 201) if mu_std is None else mu_std
    distances = np.abs(np.asarray(given, dtype=np.float64))
    grid = common_grid([looks(size, n_rows) for size in sizes], float(distances.max()))
    question = Question(n_rows, looks, grid, mean_weights(distances, grid), None)

    def risk(batch_size: int, boundary: Boundary) -> float:
        return worst_error(looks(batch_size, n_rows), boundary)

    return cheapest(question, risk, max_error, sizes, alphas)
