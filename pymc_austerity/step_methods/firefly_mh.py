"""Firefly Monte Carlo."""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Never, Unpack

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.deciding.exact import FireflyDecider
from pymc_austerity.proposals import Proposal, ProposalFunction
from pymc_austerity.setup.setup_progress import Stage
from pymc_austerity.step_methods.austerity_mh import AusterityMH
from pymc_austerity.step_methods.configured import Configured
from pymc_austerity.step_methods.few_rows import FewRowsStep
from pymc_austerity.step_methods.request import OptionFields, Options
from pymc_austerity.step_methods.statistics import STATISTICS


class FireflyMH(Configured, ABC):
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
    vars, likelihood, proposal, data, resume, rng, model
        As for `AusterityMH`.
    options : Options, optional
        `axis`, `anchor`, `steps_per_draw`, `tune`, `blocked`, `initial_point`, `compile_kwargs`
        and `setup_folder` have a meaning here. Each of them is also taken by name.
    **more
        Fields of `Options`.

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

    takes = AusterityMH.takes - {"batch_size", "sampling", "control_variates"}

    def __new__(
        cls,
        vars: Any = None,
        *args: Never,
        likelihood: Sequence[str] | Literal["auto"] = "auto",
        proposal: Proposal[Any] | ProposalFunction | Literal["auto"] = "auto",
        data: Mapping[str, Any] | None = None,
        resume: Any = None,
        rng: Any = None,
        model: pm.Model | None = None,
        options: Options | None = None,
        **more: Unpack[OptionFields],
    ) -> Any:
        """Hold the settings, and set up the step method inside a model."""
        test = "firefly"
        return cls._made(locals())

    def _set_up(self, variables: list, model: pm.Model, say: Stage) -> Any:
        return FireflyStep.made(variables, self._request, model, say)


@FireflyMH.register
class FireflyStep(FewRowsStep, shown_as="FireflyMH"):
    """Firefly Monte Carlo on some variables of a model."""

    name = "firefly_mh"
    stats_dtypes_shapes = STATISTICS | {"n_bright": (np.int64, [])}
    decider: FireflyDecider

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        self.decider.n_bright = 0  # where rows are not read
        following, statistics = super()._transition(current)
        return following, statistics | {"n_bright": self.decider.n_bright}
