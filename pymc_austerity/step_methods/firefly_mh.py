"""Firefly Monte Carlo."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.deciding.firefly import FireflyDecider
from pymc_austerity.proposals import Proposal, ProposalFunction
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.step_methods.austerity_mh import AusterityMH
from pymc_austerity.step_methods.statistics import STATISTICS

__all__ = ["FireflyMH"]


class FireflyMH(AusterityMH):
    r"""Firefly Monte Carlo: exact Metropolis-Hastings on the bright rows.

    Each row has a lower bound :math:`B_i` of its likelihood :math:`L_i` whose product over all rows
    is known: the exponential of its second-order expansion about the posterior mode minus a
    bound on the remainder. A row is bright with probability :math:`1 - B_i / L_i`. Decisions on
    proposals are made given the bright rows, and do not read the others. The bright rows are drawn
    anew at every step.

    ``AusterityMH(test="exact")`` works for the same models and accepts more of the same proposals,
    because its rows are drawn by bounds at both points instead of the current point only.

    Parameters
    ----------
    vars, likelihood, axis, anchor, proposal, tune, tuned, steps_per_draw
        As for `AusterityMH`.
    model, rng, initial_point, blocked, compile_kwargs
        As for `AusterityMH`.

    Raises
    ------
    NotRowwiseError
        The likelihood of one row needs other rows.
    DataError
        No observed data, or data or log-density that are not finite at the start.
    SettingError, SettingTypeError
        An argument cannot be used, or rows have no bounds.

    Notes
    -----
    Besides the statistics of `AusterityMH`, ``sample_stats`` contains ``n_bright``, the number
    of bright rows.

    References
    ----------
    Maclaurin, D. and Adams, R. P. (2014). Firefly Monte Carlo: exact MCMC with subsets of data.
    UAI. arXiv 1403.5693.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import FireflyMH
    >>> y = np.random.default_rng(1).poisson(3.0, size=5_000)
    >>> with pm.Model():
    ...     rate = pm.Normal("rate", 0.0, 10.0)
    ...     _ = pm.Poisson("y", pm.math.exp(rate), observed=y)
    ...     idata = pm.sample(
    ...         draws=500, step=FireflyMH(), chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(abs(np.exp(idata.posterior["rate"]).mean() - y.mean()) < 0.02)
    True
    >>> bool(idata.sample_stats["n_bright"].mean() < 50)
    True
    """

    name = "firefly_mh"
    stats_dtypes_shapes = STATISTICS | {"n_bright": (np.int64, [])}
    decider: FireflyDecider

    def __init__(
        self,
        vars: Sequence | None = None,
        *,
        likelihood: Sequence[str] | None = None,
        axis: int = 0,
        anchor: Any = None,
        proposal: Proposal[Any] | ProposalFunction | None = None,
        tune: bool = True,
        tuned: Any = None,
        steps_per_draw: int = 1,
        model: pm.Model | None = None,
        rng: Any = None,
        initial_point: dict[str, NDArray] | None = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        _prepared: PreparedModel | None = None,
    ) -> None:
        super().__init__(
            vars,
            test="firefly",  # type: ignore[arg-type]
            likelihood=likelihood,
            axis=axis,
            anchor=anchor,
            proposal=proposal,
            tune=tune,
            tuned=tuned,
            steps_per_draw=steps_per_draw,
            model=model,
            rng=rng,
            initial_point=initial_point,
            blocked=blocked,
            compile_kwargs=compile_kwargs,
            _prepared=_prepared,
        )

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        self.decider.n_bright = 0  # where rows are not read
        following, statistics = super()._transition(current)
        return following, statistics | {"n_bright": self.decider.n_bright}
