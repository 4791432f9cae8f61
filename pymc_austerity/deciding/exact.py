"""Exact decisions on proposals, for one chain at a time."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.decider import IMPOSSIBLE, Decider, LogRatio, RandomAudits
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.settings import EXACT, FIREFLY, Settings
from pymc_austerity.exact import ExactDecision, FireflyDecision, Inflation
from pymc_austerity.sequential import Decision, TestDescription


@dataclass(frozen=True)
class ExactTest:
    """Represents exact decisions in place of the name and settings of a sequential test."""

    description: TestDescription = EXACT


@dataclass
class ExactState:
    """State that changes while a chain runs.

    Attributes
    ----------
    inflation : Inflation
        Factor of the bounds, and the estimates from which it was chosen.
    """

    inflation: Inflation


class ExactDecider:
    """Accepts or rejects proposals so that the posterior is exactly invariant.

    It has the methods and attributes of a `Decider`, but nothing to design, tighten or audit.

    Parameters
    ----------
    settings : Settings
        The user's settings.
    target : LogRatio
        The log-ratio to decide on.
    sampling : PoissonSampling
        Sampling of the target.

    Attributes
    ----------
    state : ExactState
        State that changes while a chain runs.
    """

    test = ExactTest()
    plan = None
    worst_case = None
    schedule = None
    epsilon = math.nan

    def __init__(self, settings: Settings, target: LogRatio, sampling: PoissonSampling) -> None:
        self.settings = settings
        self.target = target
        self.sampling = sampling
        self.audits = RandomAudits(0.0)
        self.reset()

    def begin_chain(self, rng: np.random.Generator) -> None:
        """Begin a chain."""

    def reset(self) -> None:
        """Forget what was learned."""
        self.state = ExactState(Inflation.begin(self.sampling.inflation))

    def begin_draw(self, *, tuning: bool) -> None:
        """Nothing to do: no setting changes from draw to draw."""

    def stop_tuning(self) -> str:
        """End the tuning phase; there is nothing to report."""
        self.state = ExactState(Inflation.begin(self.state.inflation.value))
        return ""

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        rng: np.random.Generator,
        *,
        tuning: bool = False,
    ) -> Decision:
        r"""Accept or reject a proposal.

        Parameters
        ----------
        proposed, current : arrays, shape (d,)
            The two points.
        log_ratio : float
            :math:`\log q(\theta | \theta') - \log q(\theta' | \theta)` of the proposal, nats.
        rng : numpy.random.Generator
            Generator of the chain.
        tuning : bool
            Whether the chain is tuning; the inflation is chosen in this phase.
        """
        log_known = log_ratio + self.target.row_free_part(proposed, current)
        if not math.isfinite(log_known):
            return IMPOSSIBLE
        log_known += self.target.expansion(proposed, current)
        made = self._on_rows(proposed, current, log_known, rng, tuning=tuning)
        return Decision(made.accept, made.n_rows_used, 1, 0.0, math.nan, True)

    def _on_rows(
        self,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> ExactDecision | FireflyDecision:
        known = self.state.inflation
        made = self.sampling.decide(proposed, current, log_known, known.value, rng)
        if tuning:
            self.state.inflation = known.after(made.ratios, made.n_rows_used, made.log_ratio)
        return made


class FireflyDecider(ExactDecider):
    """Accepts or rejects proposals given which rows are bright; the posterior is invariant.

    Parameters
    ----------
    settings, target, sampling
        As for `ExactDecider`.

    Attributes
    ----------
    n_bright : int
        Rows that were bright when rows were last read.
    """

    test = ExactTest(FIREFLY)
    n_bright = 0

    def stop_tuning(self) -> str:
        """Nothing was chosen."""
        return ""

    def _on_rows(
        self,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> FireflyDecision:
        made = self.sampling.decide_by_fireflies(proposed, current, log_known, rng)
        self.n_bright = made.n_bright
        return made


AnyDecider: TypeAlias = Decider | ExactDecider


def decider_of(settings: Settings, target: LogRatio) -> AnyDecider:
    """The decider for the way in which a target samples its rows.

    Parameters
    ----------
    settings : Settings
        What the user chose.
    target : LogRatio
        What decisions are about.
    """
    if not isinstance(target.sampling, PoissonSampling):
        return Decider(settings, target)
    kind = FireflyDecider if settings.test == "firefly" else ExactDecider
    return kind(settings, target, target.sampling)
